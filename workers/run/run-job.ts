import { repeatable } from '../../shared/capabilities/capability.ts';
import { ApiError } from '../../shared/errors.ts';
import { type BeginVerdict, begin, releaseLease } from '../../shared/jobs/attempt.ts';
import { interrupted, overdue } from '../../shared/jobs/end-errors.ts';
import { endJob } from '../../shared/jobs/settlement/end-job.ts';
import { callsFor } from '../../shared/jobs/vendor-task.ts';
import { deleteRequest, type QueuedJob } from '../../shared/queue/queue.ts';
import { jobKeys } from '../../shared/redis/keys.ts';
import { logEvent } from '../../shared/runtime/log.ts';
import { traceIdOf } from '../../shared/tracing/trace-context.ts';
import { releaseAnswers } from '../http/answer-memory.ts';
import type { ClaimedJob } from '../queue/consumer.ts';
import type { WorkerContext } from '../worker-context.ts';
import { callVendor } from './call-vendor.ts';
import { discardUnwantedTask } from './discard-task.ts';
import { countEnd, finishRun } from './finish-run.ts';
import { FrameWriter } from './frame-writer.ts';
import { JobRun, logLifetime, type RunOutcome, vendorLabel } from './job-run.ts';
import { parkRun } from './park-run.ts';
import { endInterrupted, settleEnded } from './settle-ended.ts';
import { RunTrace } from './trace-run.ts';

/** How long a job waits that another version has written, or its task, until it is claimed again, perhaps by a worker that can read it. */
export const unreadPauseMs = 2000;

/** A claimed job, as far as its run depends on the claim. */
type RunnableJob = Pick<ClaimedJob, 'job' | 'token'> & Partial<Pick<ClaimedJob, 'verdict' | 'parkedFor'>>;

/**
 * Runs a claimed job: begin → route → vendor → frames → finish → settle. A job that its vendor runs as a task is claimed many
 * times: the first claim creates the task, the others poll it. Without a verdict `begin` is yet to be called.
 */
export async function runJob(
  context: WorkerContext,
  { job, token, verdict: claimVerdict, parkedFor = '' }: RunnableJob,
): Promise<RunOutcome> {
  const run = new JobRun(job, token, parkedFor);
  // Before `begin`: from the moment it returns "run", cancellations are sent to this process.
  context.running.add(run);
  let outcome: RunOutcome | undefined;
  try {
    const verdict =
      claimVerdict && claimVerdict.verdict !== 'wait' ? claimVerdict : await beginWhenFree(context, run, token);
    if (verdict === 'requeued') {
      outcome = verdict;
      return outcome;
    }
    if (verdict.verdict === 'other_version') {
      await releaseLease(context.redis, job.id, verdict.attempt);
      outcome = { pauseMs: unreadPauseMs };
      return outcome;
    }
    if (verdict.verdict === 'run' || verdict.verdict === 'poll') {
      run.attempt = verdict.attempt;
      run.beganAt = context.clock.now();
      if (verdict.verdict === 'run') {
        run.withdrawn = verdict.withdrawn ?? 0;
        if (verdict.attempt === 1) observeWait(context, job, run.beganAt);
      }
      if (verdict.verdict === 'poll') {
        run.task = verdict.task;
        run.progress = verdict.progress;
        if (context.running.isDraining) run.requeue();
      }
      if (context.tracer !== undefined && job.trace !== undefined) run.spans = RunTrace.begin(context, run);
      outcome = await relay(context, run, verdict.attempt, verdict.lastSeq);
    } else {
      if (verdict.verdict === 'unreadable') {
        context.log.error({ job: job.id, reason: verdict.reason }, 'job state is unreadable; the job is ended');
      }
      await endWithoutRunning(context, job, verdict.verdict);
      outcome = 'done';
    }
    // If this attempt was fenced off, another one may still need the request.
    const isOver = outcome === 'done' && run.stopReason !== 'fenced';
    if (isOver && leavesThings(job)) await cleanUp(context, job);
    return outcome;
  } finally {
    if (run.holdsAnswer) releaseAnswers(run);
    context.running.delete(run, outcome);
  }
}

/** Observes how long a job waited for its first attempt. One of low priority waits on purpose. */
function observeWait(
  { metrics }: WorkerContext,
  { capability, createdAt, trace, lane }: QueuedJob,
  beganAt: number,
): void {
  if (lane === 'flex') return;
  metrics.queueWait.observe({ capability }, Math.max(0, beganAt - createdAt) / 1000, trace && traceIdOf(trace));
}

/** Whether anything is stored beside the job, which is rare. With uploads its request is, too. */
function leavesThings({ requestBlob, capability }: QueuedJob): boolean {
  return requestBlob !== undefined || capability === 'video';
}

/** Deletes what an ended job leaves behind. Leftovers are swept. */
async function cleanUp(context: WorkerContext, job: QueuedJob): Promise<void> {
  try {
    await deleteRequest(context.blobs, (await isDeleted(context, job)) ? { ...job, resource: undefined } : job);
    if (job.capability === 'video') await discardUnwantedTask(context, job);
  } catch (error) {
    context.log.warn({ err: error, job: job.id }, 'cleaning up after a job failed');
  }
}

/** Whether the owner has deleted a resource whose request was left to its worker, which counted it; see forget.lua. */
async function isDeleted({ redis }: WorkerContext, { id, resource, requestBlob }: QueuedJob): Promise<boolean> {
  if (resource === undefined || requestBlob === undefined) return false;
  return (await redis.hget(jobKeys.state(id), 'deleted')) !== null;
}

/** Calls `begin`, and waits while another attempt holds the lease: at most a lease's length each time. */
async function beginWhenFree(
  context: WorkerContext,
  run: JobRun,
  claim: string,
): Promise<Exclude<BeginVerdict, { verdict: 'wait' }> | 'requeued'> {
  const { redis, workerId } = context;
  for (;;) {
    const verdict = await begin(redis, {
      jobId: run.job.id,
      workerId,
      claim,
      repeatable: repeatable[run.job.capability],
    });
    if (verdict.verdict !== 'wait') return verdict;
    if (context.running.isDraining) return 'requeued';
    const { waitMs } = verdict;
    await new Promise((resolve) => setTimeout(resolve, Math.min(waitMs, 1000) + 10));
  }
}

type NotRunning = Exclude<BeginVerdict['verdict'], 'run' | 'poll' | 'wait' | 'other_version'>;

const endErrors: Record<Exclude<NotRunning, 'drop' | 'settle'>, () => ApiError> = {
  overdue,
  interrupted,
  unknown: () =>
    new ApiError('outcome_unknown', 'The process that ran this request was lost, and it must not be run twice.'),
  lost: () =>
    new ApiError('outcome_unknown', 'The processes that asked after this request were lost, one after the other.'),
  unreadable: () => new ApiError('server_error', 'The state of this request cannot be read.'),
  exhausted: () => new ApiError('server_error', 'The request was tried several times without success.'),
};

/** Whether the job may be ended only while no attempt holds its lease. The lease of an unreadable one may be this worker's own. */
function isGuarded(verdict: NotRunning): boolean {
  return verdict !== 'overdue' && verdict !== 'unreadable';
}

async function endWithoutRunning(context: WorkerContext, job: QueuedJob, verdict: NotRunning): Promise<void> {
  if (verdict === 'drop') return;
  if (verdict === 'settle') {
    await settleEnded(context, job);
    return;
  }
  const error = endErrors[verdict]();
  const reply =
    verdict === 'interrupted'
      ? await endInterrupted(context, job, error)
      : await endJob(context, job, error, isGuarded(verdict) ? 'abandoned' : undefined);
  if (reply.verdict !== 'finished') return;
  // Its output is counted here: the job leaves its queue now, so no other worker claims it.
  const vendor = reply.isRunning ? '' : await settleEnded(context, job);
  countEnd(context, job, { vendor, outcome: 'failed', error });
}

/**
 * Logs which worker ran a job, and how that went. Besides a job's own outcomes there are `ended` (by another process: it
 * was cancelled, say), `fenced` (another worker has it), `gone` and `requeued`. A poll of a task that goes on has no line,
 * and neither has a job that waits for its vendor.
 */
function logRun({ log, workerId }: WorkerContext, run: JobRun, outcome: RunOutcome, ms: number): void {
  if (typeof outcome === 'object' || outcome === 'parked') return;
  const { job, stopReason, end } = run;
  const isTakenOver = stopReason === 'fenced' || stopReason === 'gone';
  const line = {
    job: job.id,
    worker: workerId,
    capability: job.capability,
    model: job.model,
    vendor: run.vendor,
    served_model: run.routed?.id === job.model ? undefined : run.routed?.id,
    attempts: run.task === undefined ? run.callsInAll : callsFor(run.task),
    ms: Math.round(ms * 10) / 10,
    outcome: end?.outcome ?? (outcome === 'requeued' ? outcome : isTakenOver ? stopReason : 'ended'),
    error: end?.errorCode,
  };
  logEvent(log, line, 'job');
}

/** Calls the vendor and writes its answer into the log, to the end. */
async function relay(context: WorkerContext, run: JobRun, attempt: number, lastSeq: number): Promise<RunOutcome> {
  const { job } = run;
  context.bandwidth.accounts.see(job.account);
  const writer = new FrameWriter({
    redis: context.redis,
    blobs: { put: (data) => context.blobs.of(job.account).put(data) },
    bandwidth: context.bandwidth,
    account: job.account,
    isCluster: context.isCluster,
    journal: context.journal,
    jobId: job.id,
    attempt,
    lastSeq,
    lifetimeMs: logLifetime(job),
    onConfirmed: () => run.confirm(false),
    onLost: (reason) => {
      if (reason instanceof ApiError && reason.cause !== undefined) {
        context.log.warn({ err: reason.cause, job: job.id }, 'writing the frames of an answer failed');
      }
      run.stop(reason);
    },
  });
  run.writer = writer;
  const deadline = setTimeout(() => run.stop('overdue'), Math.max(0, job.deadlineAt - context.clock.now()));
  const { capability } = job;
  context.metrics.running.inc({ capability });
  const startedAt = performance.now();
  let hasEnded = false;
  try {
    const { spans } = run;
    const called = await (spans === undefined
      ? callVendor(context, run, writer)
      : spans.within(() => callVendor(context, run, writer)));
    const ending = called.outcome === 'saturated' ? await parkRun(context, run, attempt, called.error) : called;
    if (typeof ending === 'string' || !('outcome' in ending)) {
      await writer.discard();
      return ending;
    }
    if (writer.firstFrameAt !== undefined) {
      // Not from the start: a job may have waited for its vendor's capacity.
      const seconds = (writer.firstFrameAt - (run.calledAt ?? startedAt)) / 1000;
      const traceId = job.trace && traceIdOf(job.trace);
      context.metrics.firstFrame.observe({ capability, vendor: vendorLabel(run) }, seconds, traceId);
    }
    const outcome = await finishRun(context, run, attempt, writer, ending);
    hasEnded = true;
    logRun(context, run, outcome, performance.now() - startedAt);
    return outcome;
  } finally {
    clearTimeout(deadline);
    if (!hasEnded) await writer.discard();
    writer.leave(hasEnded);
    run.spans?.end(run, writer.firstAt);
    context.metrics.running.dec({ capability });
    context.metrics.frames.inc(writer.frames);
  }
}

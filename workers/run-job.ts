import type { Blobs } from '../shared/blobs.ts';
import { repeatable } from '../shared/capabilities/capability.ts';
import type { Catalogue } from '../shared/catalogue/catalogue.ts';
import type { Config } from '../shared/config.ts';
import { ApiError, type ErrorCode } from '../shared/errors.ts';
import { type BeginVerdict, begin } from '../shared/jobs/begin.ts';
import { type EndJobContext, endJob } from '../shared/jobs/end-job.ts';
import { finish } from '../shared/jobs/finish.ts';
import { type Outcome, readJobState } from '../shared/jobs/job-state.ts';
import { releaseLease } from '../shared/jobs/lease.ts';
import { recordText } from '../shared/jobs/outbox.ts';
import { settlementOf, settleNow } from '../shared/jobs/settle.ts';
import type { Logger } from '../shared/log.ts';
import type { WorkerMetrics } from '../shared/metrics.ts';
import { deleteRequest, type QueuedJob } from '../shared/queue.ts';
import { callFiles } from './call-files.ts';
import { FrameWriter } from './frame-writer.ts';
import { JobRun } from './job-run.ts';
import { perform } from './perform/perform.ts';
import { chooseRoute } from './routing.ts';
import type { RunningJobs } from './running-jobs.ts';
import type { Settler } from './settler.ts';
import type { Vendor, VendorUsage } from './vendors/vendor.ts';

/** What running jobs takes; made once per process. */
export interface WorkerContext extends EndJobContext {
  readonly config: Config;
  readonly workerId: string;
  readonly blobs: Blobs;
  readonly catalogue: Catalogue;
  readonly vendors: ReadonlyMap<string, Vendor>;
  readonly running: RunningJobs;
  readonly settler: Settler;
  readonly metrics: WorkerMetrics;
  readonly log: Logger;
}

/** How a vendor call ended. */
type Ending =
  | { readonly outcome: 'completed'; readonly body: string; readonly usage: VendorUsage }
  | { readonly outcome: 'failed'; readonly error: ApiError };

/**
 * Runs a job taken from the queue: begin → route → vendor → frames → finish → settle. Answers `given back` when the job
 * must return to the queue, else `done`: whatever happened, the job has ended or is another worker's.
 * @param taking unique per taking, see `begin`
 */
export async function runJob(context: WorkerContext, job: QueuedJob, taking: string): Promise<'done' | 'given back'> {
  const run = new JobRun(job);
  // Before `begin`: from the moment it says "run", a cancellation is sent to this process.
  context.running.add(run);
  try {
    const verdict = await beginWhenFree(context, run, taking);
    if (verdict === 'given back') return verdict;
    let ended: 'done' | 'given back' = 'done';
    if (verdict.verdict === 'run') {
      run.attempt = verdict.attempt;
      run.beganAt = Date.now();
      ended = await relay(context, run, verdict.attempt, verdict.lastSeq);
    } else {
      await endWithoutRunning(context, job, verdict.verdict);
    }
    // Another attempt may need the request yet, if this one was fenced off.
    const isOver = ended === 'done' && run.stopReason !== 'fenced';
    if (isOver) await deleteRequest(context.blobs, job);
    return ended;
  } finally {
    context.running.delete(run);
  }
}

/** Asks to begin, and waits while another attempt's lease lives: at most a lease's length each time. */
async function beginWhenFree(
  context: WorkerContext,
  run: JobRun,
  taking: string,
): Promise<Exclude<BeginVerdict, { verdict: 'wait' }> | 'given back'> {
  const { redis, workerId } = context;
  for (;;) {
    const verdict = await begin(redis, {
      jobId: run.job.id,
      workerId,
      taking,
      repeatable: repeatable[run.job.capability],
    });
    if (verdict.verdict !== 'wait') return verdict;
    if (run.stopReason === 'given back') return 'given back';
    const { waitMs } = verdict;
    await new Promise((resolve) => setTimeout(resolve, Math.min(waitMs, 1000) + 10));
  }
}

type NotRunning = Exclude<BeginVerdict['verdict'], 'run' | 'wait'>;

const errorOf: Record<Exclude<NotRunning, 'drop' | 'settle'>, [ErrorCode, string]> = {
  overdue: ['timeout', 'The request was not answered within its deadline.'],
  interrupted: ['stream_interrupted', 'The answer broke off: the process that produced it was lost.'],
  unknown: ['outcome_unknown', 'The process that ran this request was lost, and it must not be run twice.'],
  exhausted: ['server_error', 'The request was tried several times without success.'],
};

async function endWithoutRunning(context: WorkerContext, job: QueuedJob, verdict: NotRunning): Promise<void> {
  if (verdict === 'drop') return;
  if (verdict !== 'settle') {
    const [code, message] = errorOf[verdict];
    await endJob(context, job, new ApiError(code, message), verdict === 'overdue' ? undefined : 'abandoned');
    return;
  }
  await settleEnded(context, job);
}

/** Settles a job that somebody has ended, by what stands in its state. */
async function settleEnded(context: WorkerContext, job: QueuedJob, vendor?: string): Promise<void> {
  const state = await readJobState(context.redis, job.id);
  const settlement = state && settlementOf(state, vendor);
  if (settlement !== undefined) await settleNow(context.redis, settlement);
}

/** Calls the vendor and writes what it says into the log, to the end. */
async function relay(
  context: WorkerContext,
  run: JobRun,
  attempt: number,
  lastSeq: number,
): Promise<'done' | 'given back'> {
  const { job } = run;
  const writer = new FrameWriter({
    redis: context.redis,
    blobs: context.blobs,
    isCluster: context.isCluster,
    jobId: job.id,
    attempt,
    lastSeq,
    lifetimeMs: job.deadlineAt - job.createdAt + job.retentionMs + 60_000,
    onConfirmed: () => {
      run.confirmedAt = Date.now();
    },
    onLost: (reason) => run.stop(reason),
  });
  const deadline = setTimeout(() => run.stop('overdue'), Math.max(0, job.deadlineAt - Date.now()));
  const { capability } = job;
  context.metrics.running.inc({ capability });
  const startedAt = performance.now();
  let vendorName = 'none';
  try {
    const ending = await callVendor(context, run, writer, (name) => {
      vendorName = name;
    });
    if (writer.firstFrameAt !== undefined) {
      const seconds = (writer.firstFrameAt - startedAt) / 1000;
      context.metrics.firstFrame.observe({ capability, vendor: vendorName }, seconds);
    }
    return await conclude(context, run, attempt, writer, ending, vendorName);
  } finally {
    clearTimeout(deadline);
    context.metrics.running.dec({ capability });
    context.metrics.frames.inc(writer.frames);
  }
}

async function callVendor(
  context: WorkerContext,
  run: JobRun,
  writer: FrameWriter,
  onRoute: (vendor: string) => void,
): Promise<Ending> {
  const { job } = run;
  try {
    const route = chooseRoute(context.catalogue, context.vendors, job.model);
    onRoute(route.vendor.name);
    const request = job.request ?? (await context.blobs.text(job.requestBlob ?? ''));
    const { stream } = job;
    const call = {
      model: route.model,
      stream,
      request,
      signal: run.signal,
      silenceMs: context.config.vendorSilenceMs,
      files: callFiles(context.blobs),
    };
    const { vendor, row } = route;
    const keep = job.retentionMs > 0;
    const performance = { vendor, row, endpoint: job.endpoint, keep, call, sink: writer };
    const { body, usage } = await perform[job.capability](performance);
    return { outcome: 'completed', body, usage };
  } catch (thrown) {
    const error = ApiError.from(thrown);
    if (error.cause !== undefined && run.stopReason === undefined) {
      // Never the error's message: a vendor's often quotes the prompt.
      context.log.warn({ err: error.cause, job: job.id, code: error.code }, 'the vendor call failed');
    }
    return { outcome: 'failed', error };
  }
}

/** Ends the job as its vendor call ended, unless the job is no longer this run's. */
async function conclude(
  context: WorkerContext,
  run: JobRun,
  attempt: number,
  writer: FrameWriter,
  ending: Ending,
  vendor: string,
): Promise<'done' | 'given back'> {
  const { job, stopReason } = run;
  if (stopReason === 'ended' || stopReason === 'fenced' || stopReason === 'gone') {
    // Whoever ended it settles it.
    await writer.discard();
    return 'done';
  }
  if (stopReason === 'given back' && ending.outcome === 'failed' && !writer.hasDelta) {
    await writer.discard();
    if ((await releaseLease(context.redis, job.id, attempt)) === 'released') return 'given back';
  }
  const error = ending.outcome === 'failed' ? stopError(stopReason, ending.error) : undefined;
  const rest =
    ending.outcome === 'completed'
      ? await writer.close('end', ending.body)
      : await writer.close('error', JSON.stringify((error as ApiError).toData()));
  const outcome: Outcome = ending.outcome;
  const usage = ending.outcome === 'completed' && ending.usage !== null ? JSON.stringify(ending.usage) : undefined;
  const reply = await finish(context.redis, {
    jobId: job.id,
    attempt,
    outcome,
    usage,
    errorCode: error?.code,
    ...rest,
    retentionMs: job.retentionMs,
    isCluster: context.isCluster,
  });
  if (reply.verdict !== 'finished' && reply.verdict !== 'already') return 'done';
  const called = vendor === 'none' ? '' : vendor;
  context.metrics.jobs.inc({ capability: job.capability, vendor, outcome });
  if (error !== undefined) context.metrics.errors.inc({ capability: job.capability, vendor, code: error.code });
  if (reply.verdict === 'already') {
    // Its own call came twice, or somebody else was faster: the state tells what stands.
    await settleEnded(context, job, called);
    return 'done';
  }
  const end = { outcome, errorCode: error?.code };
  const record = recordText({
    ...job,
    ...end,
    vendor: called,
    attempts: attempt,
    usage,
    beganAt: run.beganAt,
    endedAt: Date.now(),
  });
  // Nobody waits for it: the queue learns at once that the job is over.
  context.settler.add({ ...job, ...end, jobId: job.id, began: true, record });
  return 'done';
}

/** The error a job ends with when its run was stopped, else the vendor's. */
function stopError(reason: JobRun['stopReason'], vendorError: ApiError): ApiError {
  if (reason === 'overdue') return new ApiError('timeout', 'The request was not answered within its deadline.');
  if (reason === 'given back')
    return new ApiError('stream_interrupted', 'The answer broke off: its worker was stopped.');
  return reason instanceof ApiError ? reason : vendorError;
}

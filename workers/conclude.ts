import { ApiError } from '../shared/errors.ts';
import { readLog } from '../shared/jobs/answer-log.ts';
import { finish, finishWithError } from '../shared/jobs/finish.ts';
import { type JobState, type Outcome, readJobState } from '../shared/jobs/job-state.ts';
import { releaseLease } from '../shared/jobs/lease.ts';
import { type JobRecord, recordText } from '../shared/jobs/outbox.ts';
import { pause } from '../shared/jobs/pause.ts';
import { readServed } from '../shared/jobs/served.ts';
import { freePlace, type Settlement, settlementOf, settleNow } from '../shared/jobs/settle.ts';
import { storeUsage } from '../shared/jobs/store-usage.ts';
import { callsFor } from '../shared/jobs/vendor-task.ts';
import type { QueuedJob } from '../shared/queue.ts';
import { estimateCut, hasTokens, withEstimate } from './estimate-usage.ts';
import type { FrameWriter } from './frame-writer.ts';
import type { JobRun } from './job-run.ts';
import type { Pause } from './perform/performance.ts';
import type { VendorAnswer } from './vendors/vendor.ts';
import type { WorkerContext } from './worker-context.ts';

/** How a vendor call ended. */
export type Ending =
  | ({ readonly outcome: 'completed' } & VendorAnswer)
  | { readonly outcome: 'failed'; readonly error: ApiError }
  | ({ readonly outcome: 'paused' } & Pause);

/**
 * What becomes of a job after a taking: whatever happened, it has ended or is another worker's (`done`); or it returns to
 * the queue (`given back`), or comes back to it after a pause in ms.
 */
export type Taken = 'done' | 'given back' | { readonly pauseMs: number };

/** Ends the job as its vendor call ended, unless the job is no longer this run's. */
export async function conclude(
  context: WorkerContext,
  run: JobRun,
  attempt: number,
  writer: FrameWriter,
  ending: Ending,
): Promise<Taken> {
  const { job, stopReason } = run;
  const called: Called = {
    vendor: run.vendor,
    attempts: run.task === undefined ? run.callsInAll : callsFor(run.task),
    ending,
  };
  if (stopReason === 'ended' || stopReason === 'fenced' || stopReason === 'gone') {
    await writer.discard();
    // Whoever ended it has left it to this run to settle it.
    if (stopReason === 'ended') await settleEnded(context, job, called);
    return 'done';
  }
  if (ending.outcome === 'paused') return await pauseRun(context, run, attempt, writer, ending);
  if (stopReason === 'given back' && ending.outcome === 'failed' && !writer.hasDelta) {
    await writer.discard();
    if ((await releaseLease(context.redis, job.id, attempt)) === 'released') return 'given back';
  }
  const error = ending.outcome === 'failed' ? stopError(stopReason, ending.error) : undefined;
  const answer = ending.outcome === 'completed' ? await counted(context, job, writer, ending) : undefined;
  const rest =
    answer !== undefined
      ? await writer.close('end', answer.body)
      : await writer.close('error', JSON.stringify((error as ApiError).toData()));
  const outcome: Outcome = ending.outcome;
  const usage = usageText(answer);
  const reply = await finish(context.redis, {
    jobId: job.id,
    attempt,
    outcome,
    usage,
    errorCode: error?.code,
    ...rest,
    retentionMs: job.retentionMs,
    isCluster: context.isCluster,
    served: writer.served,
  });
  // Another attempt needs the request yet.
  if (reply.verdict === 'fenced') run.lose('fenced');
  if (reply.verdict !== 'finished' && reply.verdict !== 'already') return 'done';
  const vendor = vendorLabel(run);
  context.metrics.jobs.inc({ capability: job.capability, vendor, outcome });
  if (error !== undefined) context.metrics.errors.inc({ capability: job.capability, vendor, code: error.code });
  if (reply.verdict === 'already') {
    // Its own call came twice, or somebody else was faster: the state tells what stands.
    await settleEnded(context, job, called);
    return 'done';
  }
  const endedAt = Date.now();
  const end = { outcome, errorCode: error?.code };
  // After the end: whoever waits for the error need not wait for the count.
  const isCounted = error !== undefined && writer.hasDelta && hasTokens(job);
  const taken = isCounted ? await countCut(context, job, end) : undefined;
  const record = recordOf(run, called, { ...end, usage: usage ?? taken, endedAt });
  // Nobody waits for it: the queue learns at once that the job is over.
  const { id: jobId, account, apiKeyId, retentionMs, idempotency } = job;
  context.settler.add({ jobId, account, apiKeyId, retentionMs, idempotency, began: true, record, ...end });
  return 'done';
}

/** The record of a job that this run has ended. Each field by its name: copying the job would cost more than the rest. */
function recordOf(
  { job, task, beganAt }: JobRun,
  { vendor, attempts }: Called,
  end: Pick<JobRecord, 'outcome' | 'errorCode' | 'usage' | 'endedAt'>,
): string {
  const { id, account, apiKeyId, endpoint, capability, model, stream, createdAt, retentionMs } = job;
  return recordText({
    id,
    account,
    apiKeyId,
    endpoint,
    capability,
    model,
    stream,
    createdAt,
    retentionMs,
    vendor,
    attempts,
    beganAt: task?.beganAt ?? beganAt,
    ...end,
  });
}

/** What metrics call the vendor that a run has called. */
export function vendorLabel({ vendor }: Pick<JobRun, 'vendor'>): string {
  return vendor === '' ? 'none' : vendor;
}

/** The answer with its usage, counted where the vendor has reported none. */
async function counted(
  context: WorkerContext,
  job: QueuedJob,
  writer: FrameWriter,
  answer: VendorAnswer,
): Promise<VendorAnswer> {
  if (answer.usage !== null || !hasTokens(job)) return answer;
  await writer.flushed();
  return await withEstimate(context, job, answer);
}

function usageText(answer: VendorAnswer | undefined): string | undefined {
  return answer === undefined || answer.usage === null ? undefined : JSON.stringify(answer.usage);
}

/** The error a job ends with when its run was stopped, else the vendor's. */
function stopError(reason: JobRun['stopReason'], vendorError: ApiError): ApiError {
  if (reason === 'overdue') return new ApiError('timeout', 'The request was not answered within its deadline.');
  if (reason === 'given back')
    return new ApiError('stream_interrupted', 'The answer broke off: its worker was stopped.');
  return reason instanceof ApiError ? reason : vendorError;
}

/** What an answer that this run has ended in its middle has taken. Its caller may be back before that is counted. */
async function countCut(
  context: WorkerContext,
  job: QueuedJob,
  end: Pick<Settlement, 'outcome' | 'errorCode'>,
): Promise<string | undefined> {
  const freed = freePlace(context.redis, { ...job, ...end, jobId: job.id, began: true });
  const counted = estimateCut(context, job, { outcome: end.outcome, hasDelta: true }, '');
  const [usage] = await Promise.all([counted, freed.catch((error) => logLeftOut(context, job, error))]);
  await noteUsage(context, job, usage);
  return usage;
}

/** Without the note the usage is in the record only: whatever comes of it, the settlement follows. */
async function noteUsage(context: WorkerContext, job: QueuedJob, usage: string | undefined): Promise<void> {
  if (usage === undefined) return;
  await storeUsage(context.redis, job.id, usage).catch((error) => logLeftOut(context, job, error));
}

function logLeftOut({ log }: WorkerContext, job: QueuedJob, error: unknown): void {
  log.warn({ err: error, job: job.id }, 'a step before the settlement was left out');
}

/** Lets go of the job until its next poll. */
async function pauseRun(
  context: WorkerContext,
  run: JobRun,
  attempt: number,
  writer: FrameWriter,
  { progress, pauseMs }: Pause,
): Promise<Taken> {
  const { job } = run;
  await writer.discard();
  const { isCluster } = context;
  const ownership = await pause(context.redis, {
    jobId: job.id,
    attempt,
    progress,
    dueAt: Date.now() + pauseMs,
    lifetimeMs: logLifetime(job),
    isCluster,
  });
  if (ownership === 'ok') return { pauseMs };
  run.lose(ownership);
  if (ownership === 'ended') await settleEnded(context, job);
  return 'done';
}

/** How long a job's log may stay when nobody ever ends the job, in ms. */
export function logLifetime(job: QueuedJob): number {
  return job.deadlineAt - job.createdAt + job.retentionMs + 60_000;
}

/** Ends a job whose worker was lost in the middle of its answer, and settles it by what it had said. */
export async function endInterrupted(context: WorkerContext, job: QueuedJob, error: ApiError): Promise<void> {
  const { id: jobId, retentionMs } = job;
  const call = { jobId, guard: 'abandoned', retentionMs, isCluster: context.isCluster } as const;
  const reply = await finishWithError(context.redis, call, error);
  if (reply.verdict === 'finished') await settleEnded(context, job);
}

/** What vendors were asked for a job before somebody ended it. */
interface Called {
  /** The one that was called last; '' where none was. */
  readonly vendor: string;
  readonly attempts: number;
  /** How the run ended that asked: an answer that came too late has its vendor's counts all the same. */
  readonly ending?: Ending;
}

/**
 * Settles a job that somebody has ended, by what stands in its state.
 * @param known what the run that had the job has asked; left out: nobody, by this one
 */
export async function settleEnded(context: WorkerContext, job: QueuedJob, known?: Called): Promise<void> {
  const state = await readJobState(context.redis, job.id);
  if (state?.outcome === undefined) return;
  const called = known ?? (await calledByLog(context, state));
  const late = called.ending?.outcome === 'completed' ? usageText(called.ending) : undefined;
  const usage = state.usage ?? late ?? (await estimateCut(context, job, state, called.vendor));
  if (state.usage === undefined) await noteUsage(context, job, usage);
  const settlement = settlementOf({ ...state, usage, attempt: called.attempts }, called.vendor);
  if (settlement !== undefined) await settleNow(context.redis, settlement);
}

/** What the log of an answer tells of the run that wrote it. */
async function calledByLog({ redis }: WorkerContext, { id, hasDelta, attempt }: JobState): Promise<Called> {
  const { batches } = hasDelta ? await readLog(redis, id, 0, 1) : { batches: [] };
  const served = readServed(batches[0]?.served ?? '');
  return { vendor: served?.vendor ?? '', attempts: served?.calls ?? attempt };
}

import { ApiError } from '../shared/errors.ts';
import { finish } from '../shared/jobs/finish.ts';
import { type Outcome, readJobState } from '../shared/jobs/job-state.ts';
import { releaseLease } from '../shared/jobs/lease.ts';
import { recordText } from '../shared/jobs/outbox.ts';
import { pause } from '../shared/jobs/pause.ts';
import { settlementOf, settleNow } from '../shared/jobs/settle.ts';
import type { QueuedJob } from '../shared/queue.ts';
import type { FrameWriter } from './frame-writer.ts';
import type { JobRun } from './job-run.ts';
import type { Pause } from './perform/performance.ts';
import type { VendorUsage } from './vendors/vendor.ts';
import type { WorkerContext } from './worker-context.ts';

/** How a vendor call ended. */
export type Ending =
  | { readonly outcome: 'completed'; readonly body: string; readonly usage: VendorUsage }
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
  vendor: string,
): Promise<Taken> {
  const { job, stopReason } = run;
  if (stopReason === 'ended' || stopReason === 'fenced' || stopReason === 'gone') {
    // Whoever ended it settles it.
    await writer.discard();
    return 'done';
  }
  if (ending.outcome === 'paused') return await pauseRun(context, run, attempt, writer, ending);
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
    attempts: run.task?.attempt ?? attempt,
    usage,
    beganAt: run.task?.beganAt ?? run.beganAt,
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
  run.stop(ownership);
  return 'done';
}

/** How long a job's log may stay when nobody ever ends the job, in ms. */
export function logLifetime(job: QueuedJob): number {
  return job.deadlineAt - job.createdAt + job.retentionMs + 60_000;
}

/** Settles a job that somebody has ended, by what stands in its state. */
export async function settleEnded(context: WorkerContext, job: QueuedJob, vendor?: string): Promise<void> {
  const state = await readJobState(context.redis, job.id);
  const settlement = state && settlementOf(state, vendor);
  if (settlement !== undefined) await settleNow(context.redis, settlement);
}

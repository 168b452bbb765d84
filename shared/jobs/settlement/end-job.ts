import type { Blobs } from '../../blobs/blobs.ts';
import type { ApiError } from '../../errors.ts';
import { type CapabilityQueue, deleteRequest } from '../../queue/queue.ts';
import type { RedisClient } from '../../redis/redis.ts';
import { type EndGuard, type FinishReply, finishWithError } from '../attempt.ts';
import { type JobIdentity, type Outcome, readJobState } from '../job-state.ts';
import { freeSlot, settlementOf, settleNow } from './settle.ts';

/** Dependencies of `endJob`. */
export interface EndJobContext {
  readonly redis: RedisClient;
  readonly isCluster: boolean;
  readonly blobs: Blobs;
  /** The queue of a job: its shard of the capability's. */
  readonly queue: (job: Pick<JobIdentity, 'id' | 'capability' | 'shards'>) => CapabilityQueue;
}

/**
 * Ends a job from outside its worker: cancellation, deadline, queue limit, failed enqueue, abandoned by a dead worker. `finish`
 * is one atomic step that `begin` and `append` check, so no order of events lets a cancelled job continue: if not begun, it is
 * dropped when claimed; if begun, its worker is notified at once and its next append is refused.
 */
export async function endJob(
  context: EndJobContext,
  job: JobIdentity,
  error: ApiError,
  guard?: EndGuard,
): Promise<FinishReply> {
  const reply = await finishWithError(
    context.redis,
    {
      jobId: job.id,
      ...(guard ? { guard } : {}),
      retentionMs: job.retentionMs,
      isCluster: context.isCluster,
    },
    error,
  );
  if (reply.verdict !== 'finished') return reply;
  // If the job is not running, only its state knows the number of attempts, which its record contains.
  const state = reply.isRunning ? undefined : await readJobState(context.redis, job.id);
  if (reply.isRunning || state?.hasDelta) {
    // The worker has been notified, and settles the job once it knows the usage. If the worker was lost, the next one to claim
    // the job settles it by its output so far.
    const outcome = reply.outcome as Outcome;
    await freeSlot(context.redis, { ...job, jobId: job.id, outcome, errorCode: error.code, began: true });
    return reply;
  }
  const settlement = state && settlementOf(state);
  if (settlement !== undefined) await settleNow(context.redis, settlement);
  // A worker that owns the job deletes its request; a job that still waits must leave nothing behind.
  if (!reply.began) await forget(context, job, guard);
  return reply;
}

async function forget(context: EndJobContext, job: JobIdentity, guard: EndGuard | undefined): Promise<void> {
  const queue = context.queue(job);
  const queued = await queue.find(job.id);
  // At the queue limit, or later than it should have started, its caller would have waited on.
  await queue.remove(job.id, guard !== 'queued' && guard !== 'uncalled');
  // The job has ended, whether its files can be deleted or not: leftovers are swept.
  if (queued !== undefined) await deleteRequest(context.blobs, queued).catch(() => undefined);
}

import type { Blobs } from '../../blobs/blobs.ts';
import type { ApiError } from '../../errors.ts';
import { type CapabilityQueue, deleteRequest } from '../../queue/queue.ts';
import type { RedisClient } from '../../redis/redis.ts';
import { type EndGuard, type FinishReply, finishWithError } from '../finish.ts';
import { type JobIdentity, type Outcome, readJobState } from '../job-state.ts';
import { freeSlot, settlementOf, settleNow } from './settle.ts';

/** What ending a job from outside needs. */
export interface EndJobContext {
  readonly redis: RedisClient;
  readonly isCluster: boolean;
  readonly blobs: Blobs;
  readonly queue: (capability: JobIdentity['capability']) => CapabilityQueue;
}

/**
 * Ends a job from outside its worker: cancellation, deadline, queue limit, failed enqueue, abandoned by a dead worker.
 * Because `finish` is one atomic step that `begin` and `append` look at, no order of events lets a cancelled job go on:
 * not begun, it is dropped when it is taken; begun, its worker is told at once and is refused at its next append.
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
  // Of one that is not running only the state knows of its attempts, which the job's record tells.
  const state = reply.isRunning ? undefined : await readJobState(context.redis, job.id);
  if (reply.isRunning || state?.hasDelta) {
    // Its worker has heard of the end, and settles the job once it knows what that took. Where it was lost, so does the next
    // one that takes the job, by what it had said.
    const outcome = reply.outcome as Outcome;
    await freeSlot(context.redis, { ...job, jobId: job.id, outcome, errorCode: error.code, began: true });
    return reply;
  }
  const settlement = state && settlementOf(state);
  if (settlement !== undefined) await settleNow(context.redis, settlement);
  // A worker that has the job drops its request; of one that still waits nothing may stay behind.
  if (!reply.began) await forget(context, job);
  return reply;
}

async function forget(context: EndJobContext, job: JobIdentity): Promise<void> {
  const queue = context.queue(job.capability);
  const queued = await queue.find(job.id);
  await queue.remove(job.id);
  if (queued !== undefined) await deleteRequest(context.blobs, queued);
}

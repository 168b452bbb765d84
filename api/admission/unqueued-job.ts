import { setTimeout as delay } from 'node:timers/promises';
import { type JobState, readJobState } from '../../shared/jobs/job-state.ts';
import type { EndJobContext } from '../../shared/jobs/settlement/end-job.ts';
import { sweepAfterMs } from '../../shared/jobs/settlement/sweeper.ts';
import { readMs } from '../bounds/bounded-reads.ts';
import type { ClientConnection } from '../replies/client-connection.ts';
import { notAdmitted } from './ask-admission.ts';

/** Dependencies of looking for a job in its queue. */
export type UnqueuedJobDependencies = Pick<EndJobContext, 'redis' | 'queue'>;

/** By then the sweeper should have ended a job that never will be queued. */
const untilQueuedMs = sweepAfterMs + 5000;
/** The first and the longest pause between looks at a job: most are queued within milliseconds. */
const [minWaitMs, maxWaitMs] = [10, 500];

/** Whether a job that no worker has begun is not in its queue: its api process is about to put it there, or was killed before. */
export async function isUnqueued({ redis, queue }: UnqueuedJobDependencies, job: JobState): Promise<boolean> {
  if (!isUnbegun(job) || (await queue(job).has(job.id))) return false;
  // It may have run meanwhile, and left the queue.
  const now = await readJobState(redis, job.id);
  return now !== undefined && isUnbegun(now);
}

/**
 * Waits until an admitted job is queued, or ended because it could not be: the request of one whose api process was killed in between is
 * lost with that process. So a repeat is told of no job that never runs.
 * @returns whether it has waited, so that the job is to be looked at anew
 * @throws ApiError 503 if neither happens, or if its own api has ended it: a repeat that tried the same again would wait for twice as long.
 */
export async function untilQueued(
  services: UnqueuedJobDependencies,
  connection: Pick<ClientConnection, 'wait'>,
  job: JobState,
): Promise<boolean> {
  const giveUpAt = performance.now() + untilQueuedMs;
  let waitMs = minWaitMs;
  while (await connection.wait(isUnqueued(services, job), readMs)) {
    if (performance.now() > giveUpAt) throw notAdmitted();
    await connection.wait(delay(waitMs));
    waitMs = Math.min(2 * waitMs, maxWaitMs);
  }
  if (waitMs === minWaitMs) return false;
  const now = await connection.wait(readJobState(services.redis, job.id), readMs);
  if (now !== undefined && isRefusedByItsApi(now)) throw notAdmitted();
  return true;
}

/** Whether a job that could not be queued has ended sooner than the sweeper ends that of a killed api. */
function isRefusedByItsApi({ errorCode, createdAt, endedAt = Number.POSITIVE_INFINITY }: JobState): boolean {
  return errorCode === 'service_unavailable' && endedAt - createdAt < sweepAfterMs;
}

function isUnbegun({ outcome, attempt }: JobState): boolean {
  return outcome === undefined && attempt === 0;
}

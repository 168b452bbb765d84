import { readQueueTerms } from '../../shared/accounts/account-money.ts';
import { isMedia } from '../../shared/capabilities/capability.ts';
import { entryIdOf } from '../../shared/ids.ts';
import { withdrawAttempt } from '../../shared/jobs/attempt.ts';
import type { ParkCall } from '../../shared/queue/parking/parked-jobs.ts';
import { inlineLimit, type QueuedJob, sharingKeyOf } from '../../shared/queue/queue.ts';
import { workOfText } from '../../shared/queue/work.ts';
import { untilAccepted } from '../../shared/redis/script.ts';
import type { FullRoute } from '../pacing/pacer.ts';
import type { SaturatedError } from '../pacing/saturated-error.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { Ending } from './finish-run.ts';
import type { JobRun, RunOutcome } from './job-run.ts';

/**
 * Gives up the slot of a job whose vendors have no capacity: it waits for its turn outside of any worker. One that could not start
 * in time ends at once.
 */
export async function parkRun(
  context: WorkerContext,
  run: JobRun,
  attempt: number,
  error: SaturatedError,
): Promise<RunOutcome | Ending> {
  const { job } = run;
  const latestMs = Math.min(job.deadlineAt, job.startBy ?? job.deadlineAt) - context.clock.now();
  const { full, route } = error;
  const vendor = route.slice(0, route.indexOf('/'));
  const count = (outcome: 'parked' | 'refused'): void => context.metrics.vendorPacing.inc({ vendor, outcome });
  if (full.waitMs >= Math.min(latestMs, full.maxWaitMs ?? latestMs)) {
    count('refused');
    return { outcome: 'failed', error };
  }
  const withdrawn = await withdrawAttempt(context.redis, { jobId: job.id, attempt, hasCalled: run.calls > 0 });
  if (withdrawn !== 'withdrawn') {
    run.lose(withdrawn);
    return { outcome: 'failed', error };
  }
  if (context.running.isDraining) return 'requeued';
  // In the line of its route all others would wait for its key, which they do not need.
  if (run.needsItsKey) {
    count('parked');
    return { pauseMs: full.waitMs };
  }
  const reply = await context.parking(job).park({
    id: entryIdOf(job.id),
    token: run.claim,
    route,
    waitMs: full.isLine ? undefined : full.waitMs,
    intervalMs: full.intervalMs > 0 ? full.intervalMs : undefined,
    ...(job.capability === 'video' ? forAnyTime : boundsOf(context, job, latestMs, full)),
    lowMs: lowMsOf(context, job),
    shards: job.shards,
    account: job.account,
    ...(await placeInLine(context, job)),
  });
  if (reply.verdict !== 'lost') count(reply.verdict === 'late' ? 'refused' : 'parked');
  if (reply.verdict === 'late') return { outcome: 'failed', error: error.startingIn(reply.ms) };
  // With a lost claim another worker has it already.
  return 'parked';
}

/** Bounds of a line in which nobody waits for an answer: a video was accepted without a prediction, and may wait up to its deadline. */
const forAnyTime = { latestMs: Number.MAX_SAFE_INTEGER, maxParked: Number.MAX_SAFE_INTEGER };

function boundsOf(
  { clock, config }: WorkerContext,
  { deadlineAt }: QueuedJob,
  latestMs: number,
  full: FullRoute,
): Pick<ParkCall, 'latestMs' | 'maxParked' | 'accountShare'> {
  return {
    latestMs: Math.min(latestMs, startableMs(deadlineAt - clock.now(), full)),
    maxParked: config.queueLimit,
    accountShare: config.accountQueueShare,
  };
}

/** In which a job must start to be answered in time. Without a better knowledge of it half of the time is for the answer, at most. */
function startableMs(deadlineMs: number, { callMs = 0 }: FullRoute): number {
  return Math.max(deadlineMs - callMs, deadlineMs / 2);
}

/** For how long a job still waits for spare capacity, if it is of low priority. */
function lowMsOf({ clock, config }: WorkerContext, { lane, createdAt }: QueuedJob): number | undefined {
  const ms = createdAt + config.flexWaitMs - clock.now();
  return lane === 'flex' && ms > 0 ? ms : undefined;
}

/** How a job counts in the line of its account. One that was queued without a priority has only its request to be judged by. */
async function placeInLine({ redis }: WorkerContext, job: QueuedJob): Promise<Pick<ParkCall, 'work' | 'sharingKey'>> {
  if (job.work !== undefined) return { work: job.work, sharingKey: sharingKeyOf(job) };
  const { queueWeight, queueByKey } = await untilAccepted(() => readQueueTerms(redis, job.account));
  const work = isMedia[job.capability] ? 1 : workOfText(job.request?.length ?? inlineLimit);
  return { work: work / queueWeight, sharingKey: queueByKey ? job.apiKeyId : undefined };
}

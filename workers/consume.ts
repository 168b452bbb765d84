import { DelayedError, type Job, UnrecoverableError, WaitingError, Worker } from 'bullmq';
import type { Capability } from '../shared/capabilities/capability.ts';
import { type QueuedJob, queueOptions } from '../shared/queue.ts';
import type { RedisClient } from '../shared/redis.ts';
import { runJob } from './run-job.ts';
import type { WorkerContext } from './worker-context.ts';

/**
 * A dead worker's jobs run again 6 to 12 s later with these. Being taken twice is harmless: the job's own lease decides
 * who runs it.
 */
const lockMs = 10_000;
const stalledCheckMs = 2000;
/** Attempts are counted by `begin`; this bounds only a job that cannot even be read (its hash is malformed). */
const takings = 20;
/** BullMQ never forgets a stall, and a job that is polled for hours may live through the deaths of many workers. */
const takingsOfTasks = 1000;

/** Consumes one capability's queue. Close it to stop; running jobs go on until `close` of the worker resolves. */
export function consume(capability: Capability, redis: RedisClient, context: WorkerContext): Worker<QueuedJob> {
  const worker = new Worker<QueuedJob>(
    capability,
    async (job, token) => {
      if (typeof job.data?.id !== 'string') throw new UnrecoverableError('the queued job has no id');
      const taken = await runJob(context, job.data, token ?? job.data.id);
      if (taken === 'done') return;
      if (taken === 'given back') {
        await job.moveToWait(token);
        throw new WaitingError();
      }
      await comeBackLater(context, job, taken.pauseMs, token);
      throw new DelayedError();
    },
    queueOptions(capability, redis, {
      concurrency: context.config.workerConcurrency[capability],
      lockDuration: lockMs,
      stalledInterval: stalledCheckMs,
      maxStalledCount: capability === 'video' ? takingsOfTasks : takings,
      removeOnComplete: { count: 0 },
      removeOnFail: { count: 0 },
    }),
  );
  worker.on('error', (error) => context.log.warn({ err: error.message, capability }, 'queue'));
  worker.on('failed', (job, error) => {
    context.log.error({ err: error, job: job?.data?.id, capability }, 'a job could not be run');
  });
  return worker;
}

/**
 * Puts a job aside until its next poll. It must not fail: where Redis cannot be reached the job stays taken by nobody, and
 * BullMQ's check for stalled jobs brings it back.
 */
async function comeBackLater(
  { log }: WorkerContext,
  job: Job<QueuedJob>,
  pauseMs: number,
  token: string | undefined,
): Promise<void> {
  try {
    // With a priority it would come back behind everything that waits without one.
    if (job.priority > 0) await job.changePriority({ priority: 0 });
    await job.moveToDelayed(Date.now() + pauseMs, token);
  } catch (error) {
    log.warn({ err: error, job: job.data.id }, 'a job could not be put aside until its next poll');
  }
}

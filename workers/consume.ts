import { UnrecoverableError, WaitingError, Worker } from 'bullmq';
import type { Capability } from '../shared/capabilities/capability.ts';
import { type QueuedJob, queueOptions } from '../shared/queue.ts';
import type { RedisClient } from '../shared/redis.ts';
import { runJob, type WorkerContext } from './run-job.ts';

/**
 * A dead worker's jobs run again 6 to 12 s later with these. Being taken twice is harmless: the job's own lease decides
 * who runs it.
 */
const lockMs = 10_000;
const stalledCheckMs = 2000;
/** Attempts are counted by `begin`; this bounds only a job that cannot even be read (its hash is malformed). */
const takings = 20;

/** Consumes one capability's queue. Close it to stop; running jobs go on until `close` of the worker resolves. */
export function consume(capability: Capability, redis: RedisClient, context: WorkerContext): Worker<QueuedJob> {
  const worker = new Worker<QueuedJob>(
    capability,
    async (job, token) => {
      if (typeof job.data?.id !== 'string') throw new UnrecoverableError('the queued job has no id');
      const ended = await runJob(context, job.data, token ?? job.data.id);
      if (ended === 'done') return;
      await job.moveToWait(token);
      throw new WaitingError();
    },
    queueOptions(capability, redis, {
      concurrency: context.config.workerConcurrency[capability],
      lockDuration: lockMs,
      stalledInterval: stalledCheckMs,
      maxStalledCount: takings,
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

import { setTimeout as delay } from 'node:timers/promises';
import { DelayedError, type Job, UnrecoverableError, Worker } from 'bullmq';
import { type Capability, repeatable } from '../../shared/capabilities/capability.ts';
import type { FairnessClock } from '../../shared/queue/fairness-clock.ts';
import { type QueuedJob, queueOptions } from '../../shared/queue/queue.ts';
import type { RedisHandle } from '../../shared/redis/redis.ts';
import { untilAccepted } from '../../shared/redis/redis-refusal.ts';
import { runJob } from '../run/run-job.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { Consumer } from './consumer.ts';
import { JobConsumer } from './job-consumer.ts';

/**
 * A dead worker's jobs run again 6 to 12 s later with these. Being claimed twice is harmless: the job's own lease decides
 * who runs it.
 */
const lockMs = 10_000;
const stalledCheckMs = 2000;
/** Attempts are counted by `begin`; this bounds only a job that cannot even be read (its hash is malformed). */
const maxClaims = 20;
/** BullMQ never forgets a stall, and a job that is polled for hours may live through the deaths of many workers. */
const maxTaskClaims = 1000;

/** A clock that is further off (ms) than this from Redis's is wrong. */
const maxSkewMs = 2000;
/** How often a job that waits here is asked whether its worker is closed, in ms. */
const skewStepMs = 200;

/** Consumes one capability's queue. Close it to stop; running jobs go on until `close` resolves. */
export function consume(capability: Capability, redis: RedisHandle, context: WorkerContext): Consumer {
  return capability === 'video' ? consumeTasks(capability, redis, context) : consumeJobs(capability, redis, context);
}

/** Consumes jobs that are done in one go. */
function consumeJobs(capability: Capability, redis: RedisHandle, context: WorkerContext): Consumer {
  const { clock } = context.queue(capability);
  return new JobConsumer({
    capability,
    redis: redis.client,
    waiting: redis.subscriber(),
    workerId: context.workerId,
    concurrency: context.config.workerConcurrency[capability],
    begins: repeatable[capability],
    lockMs,
    stalledCheckMs,
    maxStalledCount: maxClaims,
    run: async ({ job, token, priority, stalled, verdict }) => {
      noteTurn(clock, priority, stalled);
      const outcome = await runJob(context, job, token, verdict);
      return outcome === 'requeued' ? outcome : 'done';
    },
    log: context.log,
  });
}

/** Consumes jobs that come back to their queue again and again, until their vendor's task is over. */
function consumeTasks(capability: Capability, redis: RedisHandle, context: WorkerContext): Consumer {
  const { clock } = context.queue(capability);
  const worker: Worker<QueuedJob> = new Worker<QueuedJob>(
    capability,
    async (job, token) => {
      noteTurn(clock, job.priority, job.stalledCounter);
      if (typeof job.data?.id !== 'string') throw new UnrecoverableError('the queued job has no id');
      const outcome = await runJob(context, job.data, token ?? job.data.id).catch((error) => {
        context.log.error({ err: error, job: job.data.id }, 'starting a job failed; it will be claimed again');
        return { pauseMs: lockMs };
      });
      if (outcome === 'done') return;
      const pauseMs = outcome === 'requeued' ? 0 : outcome.pauseMs;
      await comeBack(context, job, await waitOutSkew(context, worker, pauseMs), token);
      throw new DelayedError();
    },
    queueOptions(capability, redis.client, {
      concurrency: context.config.workerConcurrency[capability],
      lockDuration: lockMs,
      stalledInterval: stalledCheckMs,
      maxStalledCount: maxTaskClaims,
      removeOnComplete: { count: 0 },
      removeOnFail: { count: 0 },
    }),
  );
  worker.on('error', (error) => context.log.warn({ err: error.message, capability }, 'queue'));
  worker.on('failed', (job, error) => {
    context.log.error({ err: error, job: job?.data?.id, capability }, 'running a job failed');
  });
  return worker;
}

/** One that comes back after a stall was claimed before, by a base that may be gone. */
function noteTurn(clock: FairnessClock, priority: number, stalled: number): void {
  if (stalled === 0) clock.taken(priority);
}

/**
 * BullMQ puts a job aside until a moment by the clock of whoever does it, and each worker looks by its own. Where this host's
 * clock is wrong, others would take the job minutes late: it waits here instead, until this worker is closed at most.
 * Returns the pause that is left: 0 after waiting.
 */
async function waitOutSkew(
  { clock }: WorkerContext,
  worker: Pick<Worker, 'closing'>,
  pauseMs: number,
): Promise<number> {
  if (Math.abs(Date.now() - clock.now()) < maxSkewMs) return pauseMs;
  const end = performance.now() + pauseMs;
  while (performance.now() < end && worker.closing === undefined) await delay(Math.min(skewStepMs, pauseMs));
  return 0;
}

/**
 * Puts a job aside until its next poll, or, for 0 ms, where the next worker takes it. It must not fail: where Redis cannot be
 * reached the job stays claimed by nobody, and BullMQ's check for stalled jobs brings it back.
 */
async function comeBack(
  { log }: WorkerContext,
  job: Job<QueuedJob>,
  pauseMs: number,
  token: string | undefined,
): Promise<void> {
  try {
    await untilAccepted(() => giveUpTurn(job));
    await untilAccepted<unknown>(() =>
      pauseMs === 0 ? job.moveToWait(token) : job.moveToDelayed(Date.now() + pauseMs, token),
    );
  } catch (error) {
    log.warn({ err: error, job: job.data.id }, 'requeueing a job failed; it returns as stalled');
  }
}

/**
 * A claimed job has used its priority. With it, it would come back behind everything that waits without one, and
 * once the queue's base has been raised, behind everything else.
 */
async function giveUpTurn(job: Job<QueuedJob>): Promise<void> {
  if (job.priority > 0) await job.changePriority({ priority: 0 });
}

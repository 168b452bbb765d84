import { setTimeout as delay } from 'node:timers/promises';
import { DelayedError, type Job, UnrecoverableError, type Worker } from 'bullmq';
import { type Capability, repeatable } from '../../shared/capabilities/capability.ts';
import { type CapabilityQueue, type QueuedJob, queueOptions } from '../../shared/queue/queue.ts';
import { targetWaitMs } from '../../shared/queue/target-wait.ts';
import type { RedisHandle } from '../../shared/redis/redis.ts';
import { untilAccepted } from '../../shared/redis/script.ts';
import { Slots } from '../../shared/runtime/slots.ts';
import { isReadable, leaveUnread } from '../../shared/runtime/wire-version.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';
import type { RunOutcome } from '../run/job-run.ts';
import { runJob, unreadPauseMs } from '../run/run-job.ts';
import type { WorkerContext } from '../worker-context.ts';
import { ClaimSlots } from './claim-slots.ts';
import type { Consumer } from './consumer.ts';
import { JobConsumer } from './job-consumer.ts';
import { ShardedConsumer } from './sharded-consumer.ts';
import { TaskWorker } from './task-worker.ts';

/**
 * With these settings the jobs of a dead worker run again 6 to 12 s later. A job may safely be claimed twice: its own lease
 * decides which worker runs it.
 */
const lockMs = 10_000;
const stalledCheckMs = 2000;
/** `begin` counts attempts; this bounds only jobs that cannot be read (their hash is malformed). */
const maxClaims = 20;
/** BullMQ never resets a job's stall count, and a job that is polled for hours may survive the deaths of many workers. */
const maxTaskClaims = 1000;

/** How long the consumer of tasks may take to close beside its jobs. */
const closeMs = 2000;

/** A clock that differs from Redis's by more than this (ms) is wrong. */
const maxSkewMs = 2000;
/** Interval of checks (ms) for a closing worker while a job waits here. */
const skewStepMs = 200;

/**
 * Consumes the shards of a capability's queue that are assigned to this worker. `close` stops claiming and resolves once the running
 * jobs have finished.
 */
export function consume(capability: Capability, redis: RedisHandle, context: WorkerContext): Consumer {
  const { workerId, log, shards } = context;
  const concurrency = context.config.workerConcurrency[capability];
  const slots = new ClaimSlots(concurrency);
  const polls = new Slots(concurrency);
  const open = (index: number): Consumer => {
    const shard = { capability, shard: index };
    return capability === 'video'
      ? consumeTasks(shard, polls, redis, context)
      : consumeJobs(shard, slots, redis, context);
  };
  return new ShardedConsumer({ capability, redis: redis.client, workerId, shards, slots, open, log });
}

/** A shard of a capability's queue. */
interface Shard {
  readonly capability: Capability;
  readonly shard: number;
}

/** Consumes jobs that finish in one run. */
function consumeJobs(shard: Shard, slots: ClaimSlots, redis: RedisHandle, context: WorkerContext): Consumer {
  const { capability } = shard;
  return new JobConsumer({
    ...shard,
    redis: redis.client,
    waiting: redis.blocking(),
    workerId: context.workerId,
    slots,
    begins: repeatable[capability],
    lockMs,
    targetWaitMs: targetWaitMs(context.config),
    highShare: context.config.highShare,
    stalledCheckMs,
    maxStalledCount: maxClaims,
    run: runJob.bind(undefined, context),
    log: context.log,
  });
}

/**
 * Consumes jobs that return to their queue until their vendor's task is finished.
 * @param slots shared by the shards, which together claim up to twice as many jobs
 */
function consumeTasks(
  { capability, shard }: Shard,
  slots: Slots,
  redis: RedisHandle,
  context: WorkerContext,
): Consumer {
  const queue = context.queues.get(capability)?.shard(shard) as CapabilityQueue;
  const concurrency = context.config.workerConcurrency[capability];
  // It writes the queue's settings, which bound the Worker's stream of events. Without them it is bounded, too, if less.
  queue.bull().catch((error) => context.log.warn({ err: error }, 'the settings of a queue were not written'));
  const worker: TaskWorker = new TaskWorker(
    queue,
    async (job, token) => {
      if (typeof job.data?.id !== 'string') throw new UnrecoverableError('the queued job has no id');
      // One that was claimed beyond the slots may get the slot of one that has ended since this process began to close.
      const run = async (): Promise<RunOutcome> =>
        context.running.isDraining ? 'requeued' : await runReadable(context, queue, job, token ?? job.data.id);
      const outcome = await slots.run(run).catch((error): RunOutcome => {
        context.log.error({ err: error, job: job.data.id }, 'starting a job failed; it will be claimed again');
        return { pauseMs: lockMs };
      });
      if (outcome === 'done') return;
      // A parked one has left the worker already.
      if (outcome !== 'parked') {
        const pauseMs = outcome === 'requeued' ? 0 : outcome.pauseMs;
        await requeueAfter(context, job, await waitOutSkew(context, worker, pauseMs), token);
      }
      throw new DelayedError();
    },
    queueOptions(
      capability,
      redis.client,
      {
        concurrency,
        lockDuration: lockMs,
        stalledInterval: stalledCheckMs,
        maxStalledCount: maxTaskClaims,
        removeOnComplete: { count: 0 },
        removeOnFail: { count: 0 },
      },
      shard,
    ),
  );
  worker.onTrouble((trouble) => context.log.warn({ err: trouble, capability }, 'a queue cannot be worked on for now'));
  worker.on('failed', (job, error) => {
    context.log.error({ err: error, job: job?.data?.id, capability }, 'running a job failed');
  });
  return {
    close: () => closeTasks(worker, slots),
    // What is claimed beyond the slots has left the order of its queue. Twice their part, as the shards never have as many jobs.
    share: (consumers) => {
      if (consumers > 1) worker.concurrency = Math.max(1, Math.ceil((2 * concurrency) / consumers));
      else worker.concurrency = concurrency;
    },
  };
}

/** BullMQ waits for Redis without end: once its jobs are over, what is left of that is not waited for. */
async function closeTasks(worker: Worker, slots: Slots): Promise<void> {
  const closed = worker.close().then(() => true);
  let isClosed: boolean | undefined;
  do isClosed = await withTimeout(closed, closeMs);
  while (isClosed === undefined && !slots.isIdle);
}

/** Runs a job, or leaves one of another version to a worker that can read it. */
async function runReadable(
  context: WorkerContext,
  queue: CapabilityQueue,
  { data: job, attemptsStarted }: Job<QueuedJob>,
  token: string,
): Promise<RunOutcome> {
  if (isReadable(job.v)) {
    const parkedFor = attemptsStarted > 1 ? await queue.parkedFor(job.id) : '';
    return await runJob(context, { job, token, parkedFor });
  }
  leaveUnread('job');
  return { pauseMs: unreadPauseMs };
}

/**
 * BullMQ delays a job by the clock of the worker that delays it, and each worker compares with its own. If this host's clock
 * is wrong, other workers would claim the job minutes late. So it waits here instead, or until this worker closes.
 * @returns the pause that remains: 0 after waiting.
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
 * Delays a job until its next poll, or for 0 ms makes it available to the next worker. It must not fail: if Redis is
 * unreachable, the job stays claimed by no worker, and BullMQ's check for stalled jobs requeues it.
 */
async function requeueAfter(
  { log }: WorkerContext,
  job: Job<QueuedJob>,
  pauseMs: number,
  token: string | undefined,
): Promise<void> {
  try {
    await untilAccepted(() => clearPriority(job));
    await untilAccepted<unknown>(() =>
      pauseMs === 0 ? job.moveToWait(token) : job.moveToDelayed(Date.now() + pauseMs, token),
    );
  } catch (error) {
    log.warn({ err: error, job: job.data.id }, 'requeueing a job failed; it returns as stalled');
  }
}

/**
 * A claimed job has used its priority. If it kept it, it would return behind every job that waits without one, and once the
 * queue's base has been raised, behind all others too.
 */
async function clearPriority(job: Job<QueuedJob>): Promise<void> {
  if (job.priority > 0) await job.changePriority({ priority: 0 });
}

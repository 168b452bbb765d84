import type { Capability } from '../../shared/capabilities/capability.ts';
import type { BeginVerdict } from '../../shared/jobs/attempt.ts';
import type { QueuedJob } from '../../shared/queue/queue.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import type { RunOutcome } from '../run/job-run.ts';
import type { ClaimSlots } from './claim-slots.ts';

/** Claims the jobs of one queue and runs them. */
export interface Consumer {
  /** Stops claiming, and resolves when the running jobs have finished. */
  close(): Promise<void>;
  /** Tells it how many consumers share the worker's slots, one for each shard of their queue. */
  share?(consumers: number): void;
}

/** A job claimed from the queue. */
export interface ClaimedJob {
  readonly job: QueuedJob;
  /** Unique per claim. */
  readonly token: string;
  /** BullMQ's priority; 0 if it had none. */
  readonly priority: number;
  /** How often its worker was lost. */
  readonly stalled: number;
  /** The verdict of `begin`, if the job was started in the same step. */
  readonly verdict: BeginVerdict | undefined;
  /** The route for whose capacity it has waited, and for which it is the next; '' if it has not. */
  readonly parkedFor: string;
}

export interface JobConsumerOptions {
  readonly capability: Capability;
  /** Shard of the capability's queue; left out: the first. */
  readonly shard?: number;
  readonly redis: RedisClient;
  /** A dedicated connection, which waiting for jobs blocks; closed with the consumer. */
  readonly waiting: RedisClient;
  /** Unique among all processes. */
  readonly workerId: string;
  /** Jobs that run at a time. */
  readonly slots: ClaimSlots;
  /** Starts jobs as they are claimed, if their state is on that node. Only for repeatable work: the reply may be lost. */
  readonly begins: boolean;
  readonly lockMs: number;
  /** See `ClaimCall`. */
  readonly targetWaitMs: number;
  /** See `ClaimCall`. */
  readonly highShare?: number;
  readonly stalledCheckMs: number;
  readonly maxStalledCount: number;
  /**
   * Runs a job; returns whether it goes back to the queue, or has already left the worker to wait; after any other outcome it is
   * removed. A job whose run rejects is claimed again after its lock has expired, as often as a job that loses its workers may be.
   */
  readonly run: (job: ClaimedJob) => Promise<RunOutcome>;
  readonly log: Logger;
}

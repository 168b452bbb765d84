import type { Capability } from '../../shared/capabilities/capability.ts';
import type { BeginVerdict } from '../../shared/jobs/attempt.ts';
import type { QueuedJob } from '../../shared/queue/queue.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import type { Logger } from '../../shared/runtime/log.ts';

/** Claims the jobs of one queue and runs them. */
export interface Consumer {
  /** Stops claiming, and resolves when the running jobs have finished. */
  close(): Promise<void>;
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
}

export interface JobConsumerOptions {
  readonly capability: Capability;
  readonly redis: RedisClient;
  /** A dedicated connection, which waiting for jobs blocks; closed with the consumer. */
  readonly waiting: RedisClient;
  /** Unique among all processes. */
  readonly workerId: string;
  readonly concurrency: number;
  /** Starts jobs as they are claimed, if their state is on that node. Only for repeatable work: the reply may be lost. */
  readonly begins: boolean;
  readonly lockMs: number;
  /** See `ClaimCall`. */
  readonly targetWaitMs: number;
  readonly stalledCheckMs: number;
  readonly maxStalledCount: number;
  /**
   * Runs a job; returns whether it has finished or goes back to the queue. A job whose run rejects does neither: it is
   * claimed again after its lock has expired, as often as a job that loses its workers may be.
   */
  readonly run: (job: ClaimedJob) => Promise<'done' | 'requeued'>;
  readonly log: Logger;
}

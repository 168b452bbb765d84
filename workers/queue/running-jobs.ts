import type { Capability } from '../../shared/capabilities/capability.ts';
import type { InboxListener } from '../../shared/jobs/inbox.ts';
import { renewLease } from '../../shared/jobs/lease.ts';
import { JobIdMap } from '../../shared/redis/job-id-map.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import type { JobRun } from '../run/job-run.ts';

/** A lease is renewed when the log has not confirmed it for this long; well below the lease's length. */
const renewAfterMs = 3000;
const roundMs = 1000;

/** How many aborts of jobs that are not (yet) here are remembered. */
const maxAborted = 128;

/**
 * The jobs that this process runs. Receives their cancellations and renews their leases while their vendors are silent. A
 * job is registered before `begin`, so that no cancellation falls between the two. A job that is started by its claim may be
 * cancelled before the claim's reply arrives, which uses another connection: so aborts of unknown jobs, which have ended for
 * good, are remembered for a while.
 */
export class RunningJobs implements InboxListener {
  readonly #runs = new JobIdMap<JobRun>();
  /** A ring of the most recent ones. */
  readonly #aborted: string[] = [];
  #abortedNext = 0;
  readonly #redis: RedisClient;
  readonly #log: Logger;
  readonly #timer: NodeJS.Timeout;

  constructor(redis: RedisClient, log: Logger) {
    this.#redis = redis;
    this.#log = log;
    this.#timer = setInterval(() => this.#renewAll(), roundMs);
    this.#timer.unref();
  }

  add(run: JobRun): void {
    this.#runs.add(run);
    if (this.#aborted.includes(run.jobId)) run.lose('ended');
  }

  delete(run: JobRun): void {
    this.#runs.delete(run);
  }

  /** Number of jobs running here. */
  get size(): number {
    return this.#runs.size;
  }

  abort(jobId: string): void {
    let isHere = false;
    this.#runs.forEach(jobId, (run) => {
      isHere = true;
      run.lose('ended');
    });
    if (isHere) return;
    this.#aborted[this.#abortedNext] = jobId;
    this.#abortedNext = (this.#abortedNext + 1) % maxAborted;
  }

  /** An abort may have been missed: renewing every lease reveals the jobs that have ended. */
  resubscribed(): void {
    for (const run of this.#runs) void this.#renew(run);
  }

  /** Stops every run because this process is shutting down; those without output are requeued. */
  requeueAll(): void {
    for (const run of this.#runs) run.requeue();
  }

  /** Number of running jobs of each capability. */
  counts(): ReadonlyMap<Capability, number> {
    const counts = new Map<Capability, number>();
    for (const { job } of this.#runs) counts.set(job.capability, (counts.get(job.capability) ?? 0) + 1);
    return counts;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #renewAll(): void {
    const now = Date.now();
    for (const run of this.#runs) {
      if (now - run.confirmedAt >= renewAfterMs) void this.#renew(run);
    }
  }

  async #renew(run: JobRun): Promise<void> {
    const { attempt } = run;
    if (attempt === undefined || run.isRenewing) return;
    run.isRenewing = true;
    try {
      const ownership = await renewLease(this.#redis, run.job.id, attempt);
      if (ownership === 'ok') run.confirmedAt = Date.now();
      else run.lose(ownership);
    } catch (error) {
      this.#log.warn({ err: error, job: run.job.id }, 'renewing a lease failed');
    } finally {
      run.isRenewing = false;
    }
  }
}

import { type ExpiringState, expireStates, type Settlement, settle } from '../../shared/jobs/settlement/settle.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import type { Logger } from '../../shared/runtime/log.ts';

/** Batch window for settling ended jobs: under load one call settles many. */
const settleMs = 5;
/** Batch window for the expiry of their states, which is only cleanup. */
const expireMs = 1000;

/**
 * Settles the jobs that this process ended, many in one call. No caller waits for it: the sweeper settles what is lost with
 * the process.
 */
export class Settler {
  readonly #redis: RedisClient;
  readonly #log: Logger;
  #ended: Settlement[] = [];
  #settled: ExpiringState[] = [];
  #settleTimer: NodeJS.Timeout | undefined;
  #expireTimer: NodeJS.Timeout | undefined;
  #settling: Promise<void> = Promise.resolve();

  constructor(redis: RedisClient, log: Logger) {
    this.#redis = redis;
    this.#log = log;
  }

  add(job: Settlement): void {
    this.#ended.push(job);
    this.#settleTimer ??= setTimeout(() => this.#settle(), settleMs);
  }

  /** Settles the remaining jobs. */
  async close(): Promise<void> {
    this.#settle();
    await this.#settling;
    await this.#expire();
  }

  #settle(): void {
    clearTimeout(this.#settleTimer);
    this.#settleTimer = undefined;
    const jobs = this.#ended;
    this.#ended = [];
    if (jobs.length === 0) return;
    const settled = settle(this.#redis, jobs).then(
      () => {
        // Only these two fields: hundreds of entries wait here, and records are long.
        for (const { jobId, retentionMs } of jobs) this.#settled.push({ jobId, retentionMs });
        this.#expireTimer ??= setTimeout(() => void this.#expire(), expireMs);
      },
      (error) => this.#log.warn({ err: error }, 'settling a job failed; the sweeper retries it'),
    );
    this.#settling = Promise.all([this.#settling, settled]).then(() => undefined);
  }

  async #expire(): Promise<void> {
    clearTimeout(this.#expireTimer);
    this.#expireTimer = undefined;
    const jobs = this.#settled;
    this.#settled = [];
    await expireStates(this.#redis, jobs).catch((error) => this.#log.warn({ err: error }, 'expiring states failed'));
  }
}

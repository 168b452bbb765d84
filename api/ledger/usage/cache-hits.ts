import type { Database } from '../../../shared/database/database.ts';
import type { JobIdentity } from '../../../shared/jobs/job-state.ts';
import type { Logger } from '../../../shared/runtime/log.ts';
import { withTimeout } from '../../../shared/runtime/with-timeout.ts';
import { addHours, addSums, hourOf, type UsageHours } from './usage-hours.ts';

/** Interval between writes, in ms: what a killed process has not written is lost. */
const intervalMs = 5000;
/** Maximum groups (hour, account, key, model, endpoint) of counts that wait; hits of others are not counted meanwhile. */
const maxGroups = 10_000;
/** Groups in one transaction. */
const chunk = 500;
/** How long counts may be written for while the process closes. */
const closeMs = 2000;

export interface CacheHitsOptions {
  readonly db: Database;
  readonly log: Logger;
  /** Overrides of the defaults, for tests. */
  readonly intervalMs?: number;
  readonly maxGroups?: number;
}

/**
 * Counts the requests of this process that cached answers were the reply to, and adds the counts to the sums of usage every few
 * seconds: a hit makes no job and writes nothing, so that it stays as cheap as it is. While the database is away counts wait.
 */
export class CacheHits {
  readonly #db: Database;
  readonly #log: Logger;
  readonly #intervalMs: number;
  readonly #maxGroups: number;
  #pending: UsageHours = new Map();
  /** Hits that were not counted for want of room. */
  #uncounted = 0;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(options: CacheHitsOptions) {
    this.#db = options.db;
    this.#log = options.log;
    this.#intervalMs = options.intervalMs ?? intervalMs;
    this.#maxGroups = options.maxGroups ?? maxGroups;
  }

  /** Counts a hit. @param job the request as the job that it did not become */
  add(job: Pick<JobIdentity, 'account' | 'apiKeyId' | 'endpoint' | 'capability' | 'model' | 'createdAt'>): void {
    const { account: account_id, apiKeyId: api_key_id, endpoint, capability, model, createdAt: created_at } = job;
    const hours: UsageHours = new Map();
    // No vendor was called.
    hourOf(hours, { account_id, api_key_id, endpoint, capability, model, created_at, vendor: '' }).cache_hits = 1;
    this.#keep(hours);
    this.#writeLater();
  }

  /** Writes the counts. Those that cannot be written wait for the next time. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  /** Writes the remaining counts, for a bounded time. The database must still be open. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await withTimeout(this.flush(), closeMs);
  }

  /** Adds counts to those that wait, as far as there is room. */
  #keep(hours: UsageHours): void {
    for (const [group, counted] of hours) {
      const waiting = this.#pending.get(group);
      if (waiting !== undefined) addSums(waiting, counted);
      else if (this.#pending.size < this.#maxGroups) this.#pending.set(group, counted);
      else this.#uncounted += counted.cache_hits;
    }
  }

  #writeLater(): void {
    if (!this.#isClosed) this.#timer ??= setTimeout(() => void this.flush(), this.#intervalMs).unref();
  }

  async #write(): Promise<void> {
    const groups = [...this.#pending];
    this.#pending = new Map();
    try {
      while (groups.length > 0) {
        const hours: UsageHours = new Map(groups.slice(0, chunk));
        await this.#db.transaction().execute((transaction) => addHours(transaction, hours));
        groups.splice(0, chunk);
      }
    } catch (error) {
      this.#log.warn({ err: error }, 'counting cached answers failed; retrying later');
      this.#keep(new Map(groups));
      this.#writeLater();
    }
    if (this.#uncounted > 0)
      this.#log.warn({ hits: this.#uncounted }, 'too many groups of cached answers to count them');
    this.#uncounted = 0;
  }
}

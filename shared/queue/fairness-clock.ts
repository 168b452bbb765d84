import { setTimeout as delay } from 'node:timers/promises';
import type { Capability } from '../capabilities/capability.ts';
import { queuePrefix } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { loadScript } from '../redis/script.ts';

/** BullMQ accepts priorities up to 2^21 − 1. Virtual time stays below 1 ¼ · 2^20 above the base, and jobs within ½ · 2^20 of it. */
const raise = 2 ** 20;
const maxFromBase = raise + 2 ** 18;
/** Maximum distance of a job beyond the virtual time; far more than jobs can wait. */
const maxAhead = 2 ** 19;

/** Maximum age of the base used to compute a priority. */
const readingAgeMs = 1000;
/** Number of waiting jobs lowered per script call, which blocks Redis for some milliseconds. */
const jobsAtATime = 1000;
/** Interval at which a process records the highest claimed priority. */
const noteEveryMs = 20;

const note = loadScript<null>(new URL('./fairness-clock.lua', import.meta.url));

/**
 * The virtual time of one capability's queue, for start-time fair queueing: the highest start tag of any claimed job. Admission
 * gives each job the start tag max(virtual time, the account's last start tag) + 1, so that an account with many jobs waits
 * behind its own, and one with few is inserted next to the virtual time.
 *
 * Start tags only grow, but BullMQ's priorities are bounded: a priority is a start tag minus a base. Before priorities come
 * near the limit, the base is raised and the priorities of all waiting jobs are lowered.
 */
export class FairnessClock {
  readonly #redis: RedisClient;
  readonly #clockKey: string;
  readonly #waitingKey: string;
  #virtualTime = 0;
  #base = 0;
  #readAt = 0;
  /** The highest priority claimed since the last record. */
  #taken = 0;
  #isNoting = false;

  constructor(capability: Capability, redis: RedisClient) {
    this.#redis = redis;
    this.#clockKey = `${queuePrefix(capability)}:fairness`;
    this.#waitingKey = `${queuePrefix(capability)}:${capability}:prioritized`;
  }

  /** Reads the virtual time. */
  async read(): Promise<number> {
    const [now, base] = await this.#redis.hmget(this.#clockKey, 'now', 'base');
    this.#virtualTime = Number(now ?? 0);
    this.#base = Number(base ?? 0);
    this.#readAt = Date.now();
    return this.#virtualTime;
  }

  /** The BullMQ priority of a start tag, at least 1. */
  async priorityOf(startTag: number): Promise<number> {
    // A stale base would put the job a whole raise behind its start tag. A base slightly out of date is recognized and corrected.
    if (Date.now() - this.#readAt > readingAgeMs) await this.read();
    return Math.max(1, Math.min(startTag, this.#virtualTime + maxAhead) - this.#base);
  }

  /** Records the priority of a claimed job. Costs one comparison; only the highest is sent to Redis, periodically. */
  taken(priority: number): void {
    if (priority > this.#taken) this.#taken = priority;
    if (this.#taken === 0 || this.#isNoting) return;
    this.#isNoting = true;
    void this.#noteClaimed();
  }

  async #noteClaimed(): Promise<void> {
    const keys = [this.#clockKey, this.#waitingKey];
    while (this.#taken > 0) {
      const priority = this.#taken;
      this.#taken = 0;
      // A lost call leaves the clock behind until the next one.
      await note(this.#redis, keys, [priority, maxAhead, maxFromBase, raise, jobsAtATime]).catch(() => undefined);
      await delay(noteEveryMs, undefined, { ref: false });
    }
    this.#isNoting = false;
  }
}

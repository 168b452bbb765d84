import { setTimeout as delay } from 'node:timers/promises';
import type { Capability } from '../capabilities/capability.ts';
import { queuePrefix } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { loadScript } from '../redis/script.ts';

/** BullMQ takes priorities up to 2^21 − 1. Virtual time stays below 1 ¼ · 2^20 above the base, and jobs ½ · 2^20 beyond it. */
const raise = 2 ** 20;
const furthestFromBase = raise + 2 ** 18;
/** How far beyond the virtual time a job may be put; far more than jobs can wait. */
const furthestAhead = 2 ** 19;

/** How old the base may be that a job is put by. */
const readingAgeMs = 1000;
/** How many waiting jobs are brought down in one script, which stops Redis for some milliseconds. */
const jobsAtATime = 1000;
/** How often a process writes down what it has taken. */
const noteEveryMs = 20;

const note = loadScript<null>(new URL('./fairness-clock.lua', import.meta.url));

/**
 * The virtual time of one capability's queue, for start-time fair queueing: the highest number of any job that workers have
 * taken. Each waiting job has a number, its turn; admission gives it as max(virtual time, the account's last turn) + 1, so
 * that an account with many jobs waits behind its own, and one with few is put next to the virtual time.
 *
 * Numbers only grow. BullMQ's priorities cannot: they are numbers less a base, which is raised, and all waiting jobs'
 * priorities lowered, before they come near the limit.
 */
export class FairnessClock {
  readonly #redis: RedisClient;
  readonly #clockKey: string;
  readonly #waitingKey: string;
  #virtualTime = 0;
  #base = 0;
  #readAt = 0;
  /** The highest priority taken since the last note. */
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

  /** The BullMQ priority of a turn, at least 1. */
  async priorityOf(turn: number): Promise<number> {
    // An old base would put the job a whole raise behind its turn. One of a moment ago is told by that, and put right.
    if (Date.now() - this.#readAt > readingAgeMs) await this.read();
    return Math.max(1, Math.min(turn, this.#virtualTime + furthestAhead) - this.#base);
  }

  /** Notes the priority of a job that a worker has taken. Costs a comparison; Redis hears of the highest, now and then. */
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
      // One that is lost makes the clock late until the next.
      await note(this.#redis, keys, [priority, furthestAhead, furthestFromBase, raise, jobsAtATime]).catch(
        () => undefined,
      );
      await delay(noteEveryMs, undefined, { ref: false });
    }
    this.#isNoting = false;
  }
}

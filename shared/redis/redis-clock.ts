import type { RedisClient } from './redis.ts';

/** How often the clock is compared. Two clocks of ordinary machines drift apart by less than 0.1 ms in that time. */
const intervalMs = 1000;

/**
 * The time by Redis's own clock, as far as this process can tell without asking. Times that more than one process looks at
 * (deadlines, what must not be done after a moment) are Redis's: hosts' clocks may be minutes apart, and scripts have only
 * that one. It goes by this process's monotonic clock, and by what Redis has said of its own: wrong by a round trip at most.
 */
export class RedisClock {
  readonly #redis: RedisClient;
  readonly #timer: NodeJS.Timeout;
  /** Redis's time less the monotonic one, in ms. */
  #offset: number;
  #heardAt = 0;
  #measuring: Promise<void> | undefined;

  private constructor(redis: RedisClient) {
    this.#redis = redis;
    // Until Redis has been asked, which `open` waits for.
    this.#offset = Date.now() - performance.now();
    this.#timer = setInterval(() => void this.measure().catch(() => undefined), intervalMs);
    this.#timer.unref();
  }

  /** Asks Redis for its time, and keeps asking every second. */
  static async open(redis: RedisClient): Promise<RedisClock> {
    const clock = new RedisClock(redis);
    await clock.measure();
    return clock;
  }

  /** Redis's time in ms since 1970, a whole number. */
  now(): number {
    return this.at(performance.now());
  }

  /** Redis's time at a moment of `performance.now()`. */
  at(moment: number): number {
    return Math.floor(moment + this.#offset);
  }

  /** Whether the connection is gone, and Redis has said nothing for `ms`: what is sent now waits, nobody knows how long. */
  isAway(ms: number): boolean {
    return this.#redis.status !== 'ready' && performance.now() - this.#heardAt > ms;
  }

  /** Compares the clocks now; together with a comparison that is under way, if there is one. */
  measure(): Promise<void> {
    this.#measuring ??= this.#measure().finally(() => {
      this.#measuring = undefined;
    });
    return this.#measuring;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #measure(): Promise<void> {
    const sentAt = performance.now();
    const [seconds, microseconds] = await this.#redis.time();
    const repliedAt = performance.now();
    const time = Number(seconds) * 1000 + Number(microseconds) / 1000;
    // It was that time at some moment between the two. A measurement that took long does not spoil one that agrees with it.
    this.#offset = Math.min(Math.max(this.#offset, time - repliedAt), time - sentAt);
    this.#heardAt = repliedAt;
  }
}

import type { Logger } from '../runtime/log.ts';
import type { RedisClient } from './redis.ts';

/** How often the clocks are compared. Two clocks of ordinary machines drift apart by less than 0.1 ms in that time. */
const intervalMs = 1000;
/** A difference (ms) between this host's clock and Redis's that is logged: one of them is wrong, and signatures fail by it. */
const wrongMs = 10_000;

/** The answer of Redis's TIME in ms since 1970, with fractions. */
export function millisecondsOf([seconds, microseconds]: readonly (number | undefined)[]): number {
  return Number(seconds) * 1000 + Number(microseconds) / 1000;
}

/**
 * The time by Redis's clock, estimated without asking. Times that several processes compare (deadlines, latest moments for an
 * action) are Redis's: hosts' clocks may be minutes apart, and scripts have only that one. The estimate combines this process's
 * monotonic clock with Redis's reports: wrong by a round trip at most.
 */
export class RedisClock {
  readonly #redis: RedisClient;
  readonly #log: Pick<Logger, 'warn'> | undefined;
  readonly #timer: NodeJS.Timeout;
  /** Redis's time minus the monotonic time, in ms. */
  #offset: number;
  #heardAt = 0;
  #measuring: Promise<void> | undefined;
  #isWrong = false;

  private constructor(redis: RedisClient, log: Pick<Logger, 'warn'> | undefined) {
    this.#redis = redis;
    this.#log = log;
    // Until the first measurement, which `open` awaits.
    this.#offset = Date.now() - performance.now();
    this.#timer = setInterval(() => void this.measure().catch(() => undefined), intervalMs);
    this.#timer.unref();
  }

  /**
   * Asks Redis for its time, and repeats every second.
   * @param log gets a warning while this host's clock and Redis's are far apart
   */
  static async open(redis: RedisClient, log?: Pick<Logger, 'warn'>): Promise<RedisClock> {
    const clock = new RedisClock(redis, log);
    await clock.measure();
    return clock;
  }

  /** Redis's time in ms since 1970, a whole number. */
  now(): number {
    return this.at(performance.now());
  }

  /** The earlier of Redis's clock and this process's own, by which things are deleted: one clock that is ahead deletes nothing. */
  earlier(): number {
    return Math.min(Date.now(), this.now());
  }

  /** The later of the two, by which things are dated that others delete: one clock that is late has nothing deleted early. */
  later(): number {
    return Math.max(Date.now(), this.now());
  }

  /** Redis's time at a moment of `performance.now()`. */
  at(moment: number): number {
    return Math.floor(moment + this.#offset);
  }

  /** Whether Redis has been silent for `ms`. If the connection is lost, too, commands sent now wait indefinitely. */
  isSilent(ms: number): boolean {
    return performance.now() - this.#heardAt > ms;
  }

  /** Compares the clocks now; joins a comparison already in flight. */
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
    const time = millisecondsOf(await this.#redis.time());
    const repliedAt = performance.now();
    // The reading lies between the two. A slow measurement does not spoil an earlier one that agrees with it.
    this.#offset = Math.min(Math.max(this.#offset, time - repliedAt), time - sentAt);
    this.#heardAt = repliedAt;
    this.#compare();
  }

  /** Logs once that the clocks are far apart, and again once they were not meanwhile. */
  #compare(): void {
    const aheadMs = Math.round(Date.now() - this.now());
    const wasWrong = this.#isWrong;
    this.#isWrong = Math.abs(aheadMs) > wrongMs;
    if (this.#isWrong && !wasWrong) {
      this.#log?.warn({ aheadMs }, "this host's clock differs from Redis's: set the wrong one right");
    }
  }
}

import { createHash } from 'node:crypto';
import { ApiError } from '../../../shared/errors.ts';
import { attemptsKey } from '../../../shared/redis/keys.ts';
import type { RedisClient } from '../../../shared/redis/redis.ts';
import { loadScript } from '../../../shared/redis/script.ts';
import { BoundedReads } from '../../bounds/bounded-reads.ts';

const count = loadScript<[number, number]>(new URL('./count-attempt.lua', import.meta.url));

/** Timeout for counting in Redis. */
const countMs = 2000;

/** The maximum number of attempts in a time. */
export interface AttemptLimit {
  readonly most: number;
  readonly windowMs: number;
}

/** Limits attempts across all api processes: guessing passwords takes many of them. */
export class AttemptLimits {
  readonly #redis: RedisClient;
  readonly #counts = new BoundedReads(countMs, 'Limits cannot be checked for now.', 'queue_unavailable');

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /**
   * Counts an attempt before its outcome is known, so that concurrent attempts count, too.
   * @param what identifies the action and its subject: `sign-in email a@b.example`. Redis only gets its hash
   * @throws ApiError 429 with `Retry-After` when there were too many, 503 when Redis does not respond.
   */
  async take(what: string, limit: AttemptLimit): Promise<void> {
    const left = await this.#count(what, limit);
    if (left === undefined) return;
    throw new ApiError('rate_limit_exceeded', 'Too many attempts: try again later.', {
      reason: 'attempts',
      retryAfterMs: Math.max(1000, left),
    });
  }

  /** The same for what is left undone without telling the caller. @throws ApiError 503 when Redis does not respond. */
  async allows(what: string, limit: AttemptLimit): Promise<boolean> {
    return (await this.#count(what, limit)) === undefined;
  }

  /** Resets the count after a successful attempt. @throws ApiError 503 when Redis does not respond. */
  async forget(what: string): Promise<void> {
    await this.#counts.read(() => this.#redis.del(keyOf(what)));
  }

  /** Returns the milliseconds until there may be another one, if there were too many. */
  async #count(what: string, { most, windowMs }: AttemptLimit): Promise<number | undefined> {
    const [attempts, left] = await this.#counts.read(() => count(this.#redis, [keyOf(what)], [windowMs]));
    return attempts <= most ? undefined : left;
  }
}

function keyOf(what: string): string {
  return attemptsKey(createHash('sha256').update(what).digest('hex').slice(0, 32));
}

import { createHash } from 'node:crypto';
import { ApiError } from '../../../shared/errors.ts';
import { attemptsKey } from '../../../shared/redis/keys.ts';
import type { RedisClient } from '../../../shared/redis/redis.ts';
import { loadScript } from '../../../shared/redis/script.ts';
import { BoundedReads } from '../../bounds/bounded-reads.ts';

const count = loadScript<[number, number]>(new URL('./count-attempt.lua', import.meta.url));

/** How long Redis may take to count. */
const countMs = 2000;

/** How many attempts there may be in a time. */
export interface AttemptLimit {
  readonly most: number;
  readonly windowMs: number;
}

/** Limits how often something may be tried, by all api processes together: guessing passwords takes many attempts. */
export class AttemptLimits {
  readonly #redis: RedisClient;
  readonly #counts = new BoundedReads(countMs, 'Sign-ins cannot be checked for now.');

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /**
   * Counts an attempt, whether it succeeds or not: who asks at the same time as many others must not be told apart.
   * @param what names what is tried, and by whom: `sign-in email a@b.example`. Redis is only told its hash
   * @throws ApiError 429 with `Retry-After` when there were too many, 503 when Redis does not answer.
   */
  async take(what: string, { most, windowMs }: AttemptLimit): Promise<void> {
    const [attempts, left] = await this.#counts.read(() => count(this.#redis, [keyOf(what)], [windowMs]));
    if (attempts <= most) return;
    throw new ApiError('rate_limit_exceeded', 'Too many attempts: try again later.', {
      retryAfterMs: Math.max(1000, left),
    });
  }

  /** Forgets the attempts so far: one was right. @throws ApiError 503 when Redis does not answer. */
  async forget(what: string): Promise<void> {
    await this.#counts.read(() => this.#redis.del(keyOf(what)));
  }
}

function keyOf(what: string): string {
  return attemptsKey(createHash('sha256').update(what).digest('hex').slice(0, 32));
}

import { ConfigError } from '../config/config-error.ts';
import type { RedisClient } from '../redis/redis.ts';
import type { Logger } from './log.ts';

/** A claim expires after this time unless renewed. */
const claimMs = 60_000;
const renewMs = 15_000;

export interface SharedClaimOptions {
  readonly redis: RedisClient;
  /** The key in Redis that names what is in use. */
  readonly key: string;
  /** What this process uses. */
  readonly identity: string;
  /** Logged every 15 s while another process uses something else. */
  readonly contradiction: string;
  /** Why this process does not start while others use something else; left out: it does. */
  readonly refusal?: string;
  readonly log: Logger;
}

/**
 * Ensures that all processes of one Redis use the same thing, such as their files. Its identity is kept in Redis, and every running
 * process renews it.
 * - It expires a minute after the last process has stopped, so the thing may be replaced: stop all, wait, start with the new one.
 * - If Redis is emptied, the running processes, which agree, write it again within 15 s. If one with another thing starts in
 *   between, the others are contradicted: they log it every 15 s and continue, because stopping them would lose work they can
 *   still do.
 */
export class SharedClaim {
  readonly #options: SharedClaimOptions;
  readonly #timer: NodeJS.Timeout;
  #isRenewing = false;

  private constructor(options: SharedClaimOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.#renew(), renewMs);
    this.#timer.unref();
  }

  /** Claims it. @throws ConfigError with the refusal, if there is one and the others use something else. */
  static async open(options: SharedClaimOptions): Promise<SharedClaim> {
    if (!(await claim(options))) {
      if (options.refusal !== undefined) throw new ConfigError(options.refusal);
      options.log.error(options.contradiction);
    }
    return new SharedClaim(options);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #renew(): Promise<void> {
    // Skipped while the previous renewal still waits for Redis.
    if (this.#isRenewing) return;
    this.#isRenewing = true;
    const { log, key, contradiction } = this.#options;
    try {
      if (!(await claim(this.#options))) log.error(contradiction);
    } catch (error) {
      log.warn({ err: error, key }, 'renewing a claim failed');
    } finally {
      this.#isRenewing = false;
    }
  }
}

/** Whether this is what is in use. Claims it if nothing is. */
async function claim({ redis, key, identity }: SharedClaimOptions): Promise<boolean> {
  for (;;) {
    const holder = await redis.get(key);
    if (holder === null) {
      if ((await redis.set(key, identity, 'PX', claimMs, 'NX')) === 'OK') return true;
    } else if (holder !== identity) {
      return false;
    } else if ((await redis.pexpire(key, claimMs)) === 1) {
      return true;
    }
    // It was set, or expired, between the two commands.
  }
}

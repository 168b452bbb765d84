import { ConfigError } from '../config/config.ts';
import { blobStorageKey } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import type { Logger } from '../runtime/log.ts';
import type { Blobs } from './blobs.ts';

/** A claim expires after this time unless renewed. */
const claimMs = 60_000;
const renewMs = 15_000;

/**
 * Ensures that all processes of one Redis use the same blob storage: a job names blobs, and a process that looks for them
 * elsewhere would lose it. The storage's identity is kept in Redis, and every running process renews it.
 * - It expires a minute after the last process has stopped, so blobs may be moved: stop all, wait, start with the new storage.
 * - If Redis is emptied, the running processes, which agree, write it again within 15 s. If one with another storage starts in
 *   between, the others are contradicted: they log it every 15 s and continue, because stopping them would lose work they can
 *   still do.
 */
export class StorageClaim {
  readonly #redis: RedisClient;
  readonly #identity: string;
  readonly #log: Logger;
  readonly #timer: NodeJS.Timeout;
  #isRenewing = false;

  private constructor(redis: RedisClient, identity: string, log: Logger) {
    this.#redis = redis;
    this.#identity = identity;
    this.#log = log;
    this.#timer = setInterval(() => void this.#renew(), renewMs);
    this.#timer.unref();
  }

  /**
   * Claims the storage.
   * @throws ConfigError when the other processes of this Redis use a different storage.
   */
  static async open(redis: RedisClient, blobs: Blobs, log: Logger): Promise<StorageClaim> {
    if (await claim(redis, blobs.identity)) return new StorageClaim(redis, blobs.identity, log);
    throw new ConfigError(
      `The other processes on this Redis keep their files elsewhere than ${blobs.location}: give all of them the same SLUICE_DATA_DIR (a shared volume) or the same BLOBS_URL (after a move, stop all and wait a minute).`,
    );
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #renew(): Promise<void> {
    // Skipped while the previous renewal still waits for Redis.
    if (this.#isRenewing) return;
    this.#isRenewing = true;
    try {
      if (!(await claim(this.#redis, this.#identity))) {
        this.#log.error(
          "another process on this Redis uses a different blob storage; neither can read the other's files",
        );
      }
    } catch (error) {
      this.#log.warn({ err: error }, 'renewing the claim on the file storage failed');
    } finally {
      this.#isRenewing = false;
    }
  }
}

/** Whether this storage is the one in use. Claims it if none is. */
async function claim(redis: RedisClient, identity: string): Promise<boolean> {
  for (;;) {
    const holder = await redis.get(blobStorageKey);
    if (holder === null) {
      if ((await redis.set(blobStorageKey, identity, 'PX', claimMs, 'NX')) === 'OK') return true;
    } else if (holder !== identity) {
      return false;
    } else if ((await redis.pexpire(blobStorageKey, claimMs)) === 1) {
      return true;
    }
    // It was set, or expired, between the two commands.
  }
}

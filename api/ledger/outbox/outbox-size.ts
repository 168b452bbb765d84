import { Cluster } from 'ioredis';
import { accountKeys } from '../../../shared/redis/keys.ts';
import type { RedisClient } from '../../../shared/redis/redis.ts';

/** What a record takes in Redis, about, where Redis does not tell. */
const bytesPerRecord = 700;

/** How many bytes of Redis's memory the outboxes take together. */
export async function outboxBytes(redis: RedisClient): Promise<number> {
  const sizes = await Promise.all(accountKeys.allOutboxes().map((key) => sizeOf(redis, key)));
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function sizeOf(redis: RedisClient, key: string): Promise<number> {
  const length = await redis.xlen(key);
  if (length === 0) return 0;
  // The built-in Redis does not know the command.
  return (await redis.memory('USAGE', key).catch(() => undefined)) ?? length * bytesPerRecord;
}

/** How many bytes Redis uses in all; on a Cluster its masters together. */
async function usedBytes(redis: RedisClient): Promise<number> {
  const nodes = redis instanceof Cluster ? redis.nodes('master') : [redis];
  const infos = await Promise.all(nodes.map((node) => node.info('memory')));
  return infos.reduce((sum, info) => sum + Number(/^used_memory:(\d+)/m.exec(info)?.[1] ?? 0), 0);
}

/**
 * Tells whether Redis holds too much of what waits for a database that is away: the outboxes, or all that has been added
 * since it went away, answers that are to be stored among it.
 */
export class Backlog {
  readonly #redis: RedisClient;
  readonly #maxBytes: number;
  /** What Redis used when the database was first found away; undefined while it is there. */
  #usedBefore: number | undefined;
  /** Size of the outboxes, as it was last looked at. */
  bytes = 0;

  constructor(redis: RedisClient, maxBytes: number) {
    this.#redis = redis;
    this.#maxBytes = maxBytes;
  }

  /** The database is there (again). */
  end(): void {
    this.#usedBefore = undefined;
  }

  /** Looks. @param share of the bound that is asked for: 0.5 asks whether it is half reached */
  async isOver(share = 1): Promise<boolean> {
    const [bytes, used] = await Promise.all([outboxBytes(this.#redis), usedBytes(this.#redis)]);
    this.bytes = bytes;
    this.#usedBefore ??= used;
    return bytes > this.#maxBytes * share || used - this.#usedBefore > this.#maxBytes;
  }

  /** Looks at the size of the outboxes, while the database is there. */
  async measure(): Promise<number> {
    this.bytes = await outboxBytes(this.#redis);
    return this.bytes;
  }
}

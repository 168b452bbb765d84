import { Cluster } from 'ioredis';
import { accountKeys } from '../../../shared/redis/keys.ts';
import type { RedisClient } from '../../../shared/redis/redis.ts';

/** Estimated memory of a record, if Redis does not report it. */
const bytesPerRecord = 700;

/** Memory of all outboxes together, in bytes. */
export async function outboxBytes(redis: RedisClient): Promise<number> {
  const sizes = await Promise.all(accountKeys.allOutboxes().map((key) => sizeOf(redis, key)));
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function sizeOf(redis: RedisClient, key: string): Promise<number> {
  const length = await redis.xlen(key);
  if (length === 0) return 0;
  // The built-in Redis lacks the command.
  return (await redis.memory('USAGE', key).catch(() => undefined)) ?? length * bytesPerRecord;
}

/** Memory used by Redis, in bytes; on a Cluster, by all masters. */
async function usedBytes(redis: RedisClient): Promise<number> {
  const nodes = redis instanceof Cluster ? redis.nodes('master') : [redis];
  const infos = await Promise.all(nodes.map((node) => node.info('memory')));
  return infos.reduce((sum, info) => sum + Number(/^used_memory:(\d+)/m.exec(info)?.[1] ?? 0), 0);
}

/**
 * Measures whether Redis holds too much data for an unavailable database: in the outboxes, or added since the outage began,
 * which includes answers to be stored.
 */
export class Backlog {
  readonly #redis: RedisClient;
  readonly #maxBytes: number;
  /** Memory used when the outage was detected. Undefined while the database is available. */
  #usedBefore: number | undefined;
  /** Size of the outboxes as last measured. */
  bytes = 0;

  constructor(redis: RedisClient, maxBytes: number) {
    this.#redis = redis;
    this.#maxBytes = maxBytes;
  }

  /** Ends the outage. */
  end(): void {
    this.#usedBefore = undefined;
  }

  /** Measures. @param share of the limit to compare with: 0.5 for half of it */
  async isOver(share = 1): Promise<boolean> {
    const [bytes, used] = await Promise.all([outboxBytes(this.#redis), usedBytes(this.#redis)]);
    this.bytes = bytes;
    this.#usedBefore ??= used;
    return bytes > this.#maxBytes * share || used - this.#usedBefore > this.#maxBytes;
  }

  /** Measures the outboxes while the database is available. */
  async measure(): Promise<number> {
    this.bytes = await outboxBytes(this.#redis);
    return this.bytes;
  }
}

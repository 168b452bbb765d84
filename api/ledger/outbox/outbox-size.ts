import { Cluster } from 'ioredis';
import { accountKeys } from '../../../shared/redis/keys.ts';
import type { RedisClient } from '../../../shared/redis/redis.ts';

/** Estimated memory of a record, if Redis does not report it. */
const bytesPerRecord = 700;

/** Size of the part of the outboxes that is not in the database yet. */
export interface OutboxSize {
  readonly records: number;
  readonly bytes: number;
  /** When the oldest record was added, in ms since 1970 by Redis's clock; undefined if there is none. */
  readonly oldestAt: number | undefined;
}

const empty: OutboxSize = { records: 0, bytes: 0, oldestAt: undefined };

/** Measures all outboxes together: one command for each, and two more for each that is not empty. */
export async function outboxSize(redis: RedisClient): Promise<OutboxSize> {
  const sizes = await Promise.all(accountKeys.allOutboxes().map((key) => sizeOf(redis, key)));
  return sizes.reduce((sum, { records, bytes, oldestAt }) => ({
    records: sum.records + records,
    bytes: sum.bytes + bytes,
    oldestAt: earlier(sum.oldestAt, oldestAt),
  }));
}

async function sizeOf(redis: RedisClient, key: string): Promise<OutboxSize> {
  const records = await redis.xlen(key);
  if (records === 0) return empty;
  const [[oldest], bytes] = await Promise.all([
    redis.xrange(key, '-', '+', 'COUNT', 1),
    // The built-in Redis lacks the command.
    redis.memory('USAGE', key).catch(() => undefined),
  ]);
  return {
    records,
    bytes: bytes ?? records * bytesPerRecord,
    oldestAt: oldest === undefined ? undefined : Number(oldest[0].split('-')[0]),
  };
}

function earlier(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.min(one, other);
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
  readonly #now: () => number;
  #size = empty;
  #oldestMs = 0;
  #measuredAt = performance.now();

  /** @param now Redis's clock, in ms since 1970 */
  constructor(redis: RedisClient, maxBytes: number, now: () => number = Date.now) {
    this.#redis = redis;
    this.#maxBytes = maxBytes;
    this.#now = now;
  }

  /** How long ago the outboxes were measured, in ms: Redis may be away. */
  get ageMs(): number {
    return performance.now() - this.#measuredAt;
  }

  /** Memory of the outboxes as last measured, in bytes. */
  get bytes(): number {
    return this.#size.bytes;
  }

  /** Records in the outboxes as last measured. */
  get records(): number {
    return this.#size.records;
  }

  /** Age of the oldest of them when they were measured, in ms. */
  get oldestMs(): number {
    return this.#oldestMs;
  }

  /** Ends the outage. */
  end(): void {
    this.#usedBefore = undefined;
  }

  /** Measures. @param share of the limit to compare with: 0.5 for half of it */
  async isOver(share = 1): Promise<boolean> {
    const [bytes, used] = await Promise.all([this.measure(), usedBytes(this.#redis)]);
    this.#usedBefore ??= used;
    return bytes > this.#maxBytes * share || used - this.#usedBefore > this.#maxBytes;
  }

  /** Measures the outboxes. @returns their bytes */
  async measure(): Promise<number> {
    this.#size = await outboxSize(this.#redis);
    this.#measuredAt = performance.now();
    const { oldestAt } = this.#size;
    this.#oldestMs = oldestAt === undefined ? 0 : Math.max(0, this.#now() - oldestAt);
    return this.#size.bytes;
  }
}

import type { Capability } from '../capabilities/capability.ts';
import { queueConsumersKey } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { rendezvous } from '../runtime/rendezvous.ts';

/** How long a worker counts after its last report, in ms: three reports. */
const countsMs = 15_000;

/** Reports that a worker consumes a queue. Returns all workers that do. */
export async function reportConsumer(redis: RedisClient, capability: Capability, workerId: string): Promise<string[]> {
  const key = queueConsumersKey(capability);
  // By Redis's clock: a worker whose own clock is ahead would remove all others.
  const now = Number((await redis.time())[0]) * 1000;
  const replies = await redis
    .multi()
    .zadd(key, now + countsMs, workerId)
    .zremrangebyscore(key, '-inf', now)
    .zrange(key, '0', '-1')
    .pexpire(key, countsMs)
    .exec();
  const [error, workers] = replies?.[2] ?? [];
  if (error || !Array.isArray(workers)) throw error ?? new Error('Redis has not answered');
  return workers.map(String);
}

/** Removes a worker that consumes a queue no longer. */
export async function removeConsumer(redis: RedisClient, capability: Capability, workerId: string): Promise<void> {
  await redis.zrem(queueConsumersKey(capability), workerId);
}

/** Shards that a worker serves even if others serve them, too: none is without work. */
const minShards = 2;
/** Workers that serve each shard, so that one can be lost. */
const minWorkers = 2;

/**
 * The shards that a worker serves, by rendezvous hashing: when a worker comes or goes, only the shards that it serves change
 * hands. Each has two workers where there are two, and each worker two shards.
 * @param workers all that consume the queue, this one among them
 */
export function assignedShards(workers: readonly string[], worker: string, shards: number): Set<number> {
  const numbers = Array.from({ length: shards }, (_, shard) => shard);
  const others = workers.filter((other) => other !== worker);
  const draws = numbers.map((shard) => rendezvous(`shard ${shard}`));
  const drawn = (shard: number, name: string): number => draws[shard]?.(name) ?? 0;
  const isServed = (shard: number): boolean => {
    const own = drawn(shard, worker);
    return others.filter((other) => drawn(shard, other) > own).length < minWorkers;
  };
  const byPreference = [...numbers].sort((one, other) => drawn(other, worker) - drawn(one, worker));
  const preferred = byPreference.slice(0, minShards);
  return new Set([...numbers.filter(isServed), ...preferred].sort((one, other) => one - other));
}

import { Cluster } from 'ioredis';
import { ConfigError } from '../config/config-error.ts';
import type { RedisClient } from './redis.ts';

/** Redis's memory use. */
export interface RedisMemory {
  /** Share of its limit, or without a limit of the machine's memory, 0 to 1; 0 if neither is known. */
  readonly share: number;
  /** `maxmemory` in bytes; 0: no limit. */
  readonly limit: number;
}

/** Reads Redis's memory use. On a Cluster: of the fullest master, with the lowest limit. */
export async function memoryUse(redis: RedisClient): Promise<RedisMemory> {
  const uses = (await memoryInfos(redis)).map(memoryUseOf);
  return {
    share: Math.max(0, ...uses.map(({ share }) => share)),
    limit: uses.length === 0 ? 0 : Math.min(...uses.map(({ limit }) => limit)),
  };
}

function memoryUseOf(info: string): RedisMemory {
  const figure = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
  const limit = figure('maxmemory');
  const total = limit > 0 ? limit : figure('total_system_memory');
  return { share: total > 0 ? figure('used_memory') / total : 0, limit };
}

function memoryInfos(redis: RedisClient): Promise<string[]> {
  return infos(redis, 'memory');
}

/** A section of INFO, of each master. */
function infos(redis: RedisClient, section: 'memory' | 'stats'): Promise<string[]> {
  const nodes = redis instanceof Cluster ? redis.nodes('master') : [redis];
  return Promise.all(nodes.map((node) => node.info(section)));
}

/** Number of keys that Redis has evicted since its start; of a Cluster: of all masters. */
export async function evictedKeys(redis: RedisClient): Promise<number> {
  const stats = await infos(redis, 'stats');
  return stats.reduce((sum, info) => sum + Number(/^evicted_keys:(\d+)/m.exec(info)?.[1] ?? 0), 0);
}

/**
 * Checks how Redis treats its memory.
 * @param allowsEviction whether a Redis that may evict keys is only warned of
 * @returns warnings for the operator: that this Redis may evict accepted jobs, or use all memory of its machine.
 * @throws ConfigError for a Redis that may evict keys
 */
export async function checkRedisMemory(redis: RedisClient, allowsEviction: boolean): Promise<string[]> {
  const infos = await memoryInfos(redis);
  // A Redis that does not report its policy has none to set.
  const policies = infos.map((info) => /^maxmemory_policy:(\S+)/m.exec(info)?.[1] ?? 'noeviction');
  const evicting = policies.find((policy) => policy !== 'noeviction');
  const warnings: string[] = [];
  if (evicting !== undefined) {
    const sentence = `Redis has maxmemory-policy ${evicting} and may silently lose accepted jobs and balances: set it to noeviction`;
    if (!allowsEviction) {
      throw new ConfigError(
        `${sentence} (CONFIG SET maxmemory-policy noeviction, or the parameters of a managed service). SLUICE_REDIS_EVICTION=allowed starts all the same.`,
      );
    }
    warnings.push(`${sentence}.`);
  }
  // A Redis that does not report it has none to set.
  if (infos.some((info) => /^maxmemory:0\s*$/m.test(info))) {
    warnings.push(
      'Redis has no maxmemory and may take all memory of its machine: set one. New work is shed at 70 % of it.',
    );
  }
  return warnings;
}

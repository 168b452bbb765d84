import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import type { Redis } from 'ioredis';
import { eventually } from './eventually.ts';
import type { TestRedis } from './redis.ts';

/** A way in which a Redis that runs refuses writes for a while. */
export interface Refusal {
  /** The code of its errors. */
  readonly code: string;
  begin(redis: Redis, server: TestRedis): Promise<unknown>;
  end(redis: Redis): Promise<unknown>;
}

/** Every way that one Redis can be brought to. One whose disk is gone stays so. */
export const refusals: readonly Refusal[] = [
  {
    code: 'NOREPLICAS',
    begin: (redis) => redis.config('SET', 'min-replicas-to-write', '3'),
    end: (redis) => redis.config('SET', 'min-replicas-to-write', '0'),
  },
  {
    code: 'OOM',
    begin: (redis) => redis.config('SET', 'maxmemory', '1'),
    end: (redis) => redis.config('SET', 'maxmemory', '0'),
  },
  {
    // It looks for a master that does not exist, and serves what it has meanwhile.
    code: 'READONLY',
    begin: (redis) => redis.replicaof('127.0.0.1', 1),
    end: (redis) => redis.replicaof('NO', 'ONE'),
  },
  {
    code: 'MISCONF',
    begin: async (redis, server) => {
      await redis.config('SET', 'save', '3600 1000000');
      await rm(server.dir, { recursive: true, force: true });
      await redis.bgsave();
      await eventually(async () => assert.match(await redis.info('persistence'), /rdb_last_bgsave_status:err/));
    },
    end: (redis) => redis.config('SET', 'stop-writes-on-bgsave-error', 'no'),
  },
];

/** The one that needs least: writes want replicas that are not there. */
export const [wantingReplicas] = refusals as readonly [Refusal, ...Refusal[]];

/** How often a Redis has answered with an error of a code since it started. */
export async function timesAnswered(redis: Redis, code: string): Promise<number> {
  const info = await redis.info('errorstats');
  return Number(new RegExp(`^errorstat_${code}:count=(\\d+)`, 'm').exec(info)?.[1] ?? 0);
}

import { jobKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { loadScript } from '../redis/script.ts';
import { countedByWorkersMs } from './settlement/settle.ts';

/** Lifetime of a deleted resource's state: long enough for its settlement and record. */
const deletedMs = 600_000;

const script = loadScript<number>(new URL('./forget.lua', import.meta.url));

/**
 * Marks an ended job's resource as deleted in Redis, if it is known there; see forget.lua.
 * @returns whether its worker still counts its usage, for which it reads the request: the worker deletes that afterwards
 */
export async function forgetResource(redis: RedisClient, jobId: string): Promise<boolean> {
  const reply = await script(redis, [jobKeys.state(jobId), jobKeys.log(jobId)], [deletedMs, countedByWorkersMs]);
  return reply === 2;
}

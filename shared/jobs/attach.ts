import { jobKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { loadScript } from '../redis/script.ts';
import { journaledScript } from './journal/write-journal.ts';

const script = loadScript<number>(new URL('./attach.lua', import.meta.url), journaledScript);

/** Registers a process as another reader of a job. Returns whether the job's state exists. */
export async function attach(redis: RedisClient, jobId: string, readerId: string): Promise<boolean> {
  return (await script(redis, [jobKeys.state(jobId)], [readerId])) === 1;
}

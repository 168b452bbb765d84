import { jobKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { loadScript, untilAccepted } from '../redis/script.ts';

const script = loadScript<number>(new URL('./store-usage.lua', import.meta.url));

/**
 * Stores an ended job's usage if its end did not contain it; see store-usage.lua.
 * @param usage as JSON text
 * @param cost in nano-dollars; undefined if unknown
 */
export async function storeUsage(redis: RedisClient, jobId: string, usage: string, cost?: number): Promise<void> {
  await untilAccepted(() => script(redis, [jobKeys.state(jobId)], [usage, cost ?? '']));
}

import { jobKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { untilAccepted } from '../redis/redis-refusal.ts';
import { loadScript } from '../redis/script.ts';

const script = loadScript<number>(new URL('./store-usage.lua', import.meta.url));

/**
 * Notes what an ended job took, where its end did not say; see store-usage.lua.
 * @param usage as JSON text
 * @param cost in nano-dollars; undefined where nobody knows
 */
export async function storeUsage(redis: RedisClient, jobId: string, usage: string, cost?: number): Promise<void> {
  await untilAccepted(() => script(redis, [jobKeys.state(jobId)], [usage, cost ?? '']));
}

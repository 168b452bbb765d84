import { jobKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { loadScript, untilAccepted } from '../redis/script.ts';

const script = loadScript<number>(new URL('./store-usage.lua', import.meta.url));

/**
 * Stores an ended job's usage if its end did not contain it; see store-usage.lua.
 * @param charge `usage` as JSON text, the amounts in nano-dollars; an undefined cost is unknown
 */
export async function storeUsage(
  redis: RedisClient,
  jobId: string,
  charge: { readonly usage: string; readonly cost: number | undefined; readonly saved?: number | undefined },
): Promise<void> {
  const { usage, cost = '', saved } = charge;
  await untilAccepted(() => script(redis, [jobKeys.state(jobId)], [usage, cost, saved || '']));
}

import { jobKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { loadScript, untilAccepted } from '../redis/script.ts';
import type { Ownership } from './append.ts';
import { leaseMs } from './begin.ts';

const renewScript = loadScript<Ownership>(new URL('./renew.lua', import.meta.url));
const releaseScript = loadScript<Ownership | 'released' | 'kept'>(new URL('./release.lua', import.meta.url));

/** Renews the lease on a job whose vendor is silent; see renew.lua. */
export function renewLease(redis: RedisClient, jobId: string, attempt: number): Promise<Ownership> {
  return untilAccepted(() => renewScript(redis, [jobKeys.state(jobId)], [attempt, leaseMs]));
}

/** Requeues a job without committed output; see release.lua. */
export function releaseLease(
  redis: RedisClient,
  jobId: string,
  attempt: number,
): Promise<Ownership | 'released' | 'kept'> {
  return untilAccepted(() => releaseScript(redis, [jobKeys.state(jobId)], [attempt]));
}

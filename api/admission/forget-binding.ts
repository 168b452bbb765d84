import type { JobIdentity, JobState } from '../../shared/jobs/job-state.ts';
import { freeSlot } from '../../shared/jobs/settlement/settle.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import { ownBinding } from './own-binding.ts';

/**
 * Frees an idempotency key whose job is not replayed, so that the caller's retry becomes a new job. The bound job is settled
 * by its worker, which knows what it used, or by the sweeper.
 * @param bound undefined when it is gone
 */
export async function forgetBinding(
  services: { readonly redis: RedisClient },
  { account, apiKeyId: own, idempotency }: JobIdentity,
  boundJobId: string,
  bound: JobState | undefined,
): Promise<void> {
  // Another API key of the account may have bound it.
  const { apiKeyId = own, outcome = 'failed', errorCode, attempt = 0 } = bound ?? {};
  const ending = { outcome, errorCode, began: attempt > 0 };
  // It has one of two names.
  for (const name of new Set([idempotency, ownBinding({ account, idempotency })])) {
    await freeSlot(services.redis, { jobId: boundJobId, account, apiKeyId, idempotency: name, ...ending });
  }
}

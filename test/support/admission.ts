import type { AdmitCall } from '../../api/admission/admit.ts';
import type { Caller } from '../../api/auth/caller.ts';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import { accountKeys } from '../../shared/redis/keys.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';

/** A caller without any limit. */
export const unlimitedCaller: Caller = {
  ...{ account: 'account', apiKeyId: 'key', hash: 'hash', kind: 'standard', revision: 1, expiresAt: undefined },
  ...{ capabilities: undefined, models: undefined, rpm: undefined, tpm: undefined, modelLimits: undefined },
  ...{ budget: undefined, concurrency: undefined, onDisconnect: undefined, unsupportedParameters: undefined },
  ...{
    cacheBreakpoints: undefined,
    singleFlight: undefined,
    cacheSeconds: undefined,
    priority: undefined,
    maxPriority: undefined,
    vendorIds: undefined,
  },
};

/** An asking for admission, as a process that is not on a Cluster asks for a job whose state is there already. */
export function admission(job: JobIdentity, changed: Partial<AdmitCall> = {}): AdmitCall {
  return {
    job,
    caller: { ...unlimitedCaller, account: job.account, apiKeyId: job.apiKeyId },
    ...{ time: job.createdAt, notAfter: job.deadlineAt },
    ...{ concurrency: 10_000, bodyHash: 'body', shedding: undefined, flows: true },
    ...{ hold: 'unknown', tokens: 0, reader: undefined },
    ...changed,
  };
}

/**
 * Tells Redis of an account and its key, as an api process does at their first request.
 * @param credit nano-dollars; left out: it is not limited
 */
export async function knowCaller(
  redis: RedisClient,
  { account = 'account', apiKeyId = 'key', credit = '' as number | '' } = {},
): Promise<void> {
  await redis.set(accountKeys.keyActive(account, apiKeyId), '1');
  await redis.hset(accountKeys.account(account), 'credit', credit);
}

import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import { accountKeys } from '../../shared/redis/keys.ts';

/**
 * Names of bindings (hashes of idempotency keys) lie under the tag of an account, which it shares with a 64th of all accounts.
 * They do not contain the account, as the release before does not write it. So the first account of a tag to use a name has
 * it as it is, and any other one of them that uses it meanwhile has this one, which admission looks for first.
 */
export function ownBinding({ account, idempotency }: Pick<JobIdentity, 'account' | 'idempotency'>): string {
  const own = `:${account}`;
  return idempotency.endsWith(own) ? idempotency : idempotency + own;
}

/** Keys of both bindings that an account may have of a name. */
export function bindingKeys(account: string, idempotency: string): [shared: string, own: string] {
  return [accountKeys.idempotency(account, idempotency), accountKeys.ownIdempotency(account, idempotency)];
}

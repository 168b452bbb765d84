import type { Database } from '../database/database.ts';
import { ApiError } from '../errors.ts';
import type { RedisClient } from '../redis/redis.ts';
import type { AccountMoney } from './account-money.ts';
import { type AccountWithMoney, findAccount } from './accounts.ts';
import { tellRedisEventually } from './sync-accounts.ts';

/** Changes to an account; omitted fields stay. */
export interface AccountChange {
  readonly name?: string | undefined;
  readonly isUnlimited?: boolean | undefined;
  readonly isSuspended?: boolean | undefined;
  readonly queueWeight?: number | undefined;
  readonly queueByKey?: boolean | undefined;
  readonly maxPriority?: AccountMoney['maxPriority'] | undefined;
}

/**
 * Changes an account: first in the database, which is durable, then in Redis, which every admission reads. Idempotent.
 * @returns the account after the change; undefined if there is none
 * @throws ApiError 503 while Redis cannot be told. It is told again in the background; until then admission uses the old values.
 */
export async function changeAccount(
  db: Database,
  redis: RedisClient,
  id: string,
  { name, isUnlimited, isSuspended, queueWeight, queueByKey, maxPriority }: AccountChange,
): Promise<AccountWithMoney | undefined> {
  const now = Date.now();
  await db
    .updateTable('accounts')
    .set((is) => ({
      ...(name === undefined ? {} : { name }),
      ...(isUnlimited === undefined ? {} : { is_unlimited: isUnlimited ? 1 : 0 }),
      ...(queueWeight === undefined ? {} : { queue_weight: queueWeight }),
      ...(queueByKey === undefined ? {} : { queue_by_key: queueByKey ? 1 : 0 }),
      ...(maxPriority === undefined ? {} : { max_priority: maxPriority }),
      ...(isSuspended === undefined
        ? {}
        : { suspended_at: isSuspended ? is.fn.coalesce('suspended_at', is.val(now)) : null }),
      id,
    }))
    .where('id', '=', id)
    .execute();
  const account = await findAccount(db, id);
  if (account === undefined || (await tellRedisEventually(db, redis, id))) return account;
  const message = 'The account is changed, but requests do not notice yet: Redis cannot be reached. It is tried again.';
  throw new ApiError('service_unavailable', message, { reason: 'queue_unavailable', retryAfterMs: 2000 });
}

import { readAccountMoney } from '../../../shared/accounts/account-money.ts';
import type { AccountWithMoney } from '../../../shared/accounts/accounts.ts';
import { toDollars } from '../../../shared/money/cost.ts';
import type { RedisClient } from '../../../shared/redis/redis.ts';
import { withTimeout } from '../../../shared/runtime/with-timeout.ts';

/** Timeout for Redis: the database is nearly as current. */
const readMs = 1000;

/**
 * The balance of an account in dollars: its credit minus the cost of its jobs and the holds of unfinished ones. Redis is
 * most current; the database is used for inactive accounts, and without Redis. Null: unlimited.
 */
export async function readBalance(redis: RedisClient, account: AccountWithMoney): Promise<number | null> {
  if (account.isUnlimited) return null;
  const known = await withTimeout(
    readAccountMoney(redis, account.id).catch(() => undefined),
    readMs,
  );
  return toDollars(account.credit - (known?.charged ?? account.charged) - (known?.held ?? 0));
}

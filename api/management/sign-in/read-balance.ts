import { readAccountMoney } from '../../../shared/accounts/account-money.ts';
import type { AccountWithMoney } from '../../../shared/accounts/accounts.ts';
import { toDollars } from '../../../shared/money/dollars.ts';
import type { RedisClient } from '../../../shared/redis/redis.ts';
import { withTimeout } from '../../../shared/runtime/with-timeout.ts';

/** How long Redis may take: what the database says is nearly as new. */
const readMs = 1000;

/**
 * What an account has left, in dollars: its credit, less what its jobs have cost and what those under way may cost. Admission
 * knows it best; of an account that has done nothing of late, and without Redis, the database does. Null: unlimited.
 */
export async function readBalance(redis: RedisClient, account: AccountWithMoney): Promise<number | null> {
  if (account.isUnlimited) return null;
  const known = await withTimeout(
    readAccountMoney(redis, account.id).catch(() => undefined),
    readMs,
  );
  return toDollars(account.credit - (known?.charged ?? account.charged) - (known?.held ?? 0));
}

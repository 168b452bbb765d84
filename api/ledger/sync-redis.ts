import { type BudgetPeriod, budgetPeriodAt, forgetBudget } from '../../shared/accounts/account-money.ts';
import { syncKeyFlags } from '../../shared/accounts/key-flag.ts';
import { syncAccounts } from '../../shared/accounts/sync-accounts.ts';
import type { Database } from '../../shared/database/database.ts';
import { type BudgetedKey, dropSettledHolds, raiseBudgets, raiseCharges } from '../../shared/money/raise-to-ledger.ts';
import { accountKeys } from '../../shared/redis/keys.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';

/**
 * Syncs Redis with the database: keys, accounts, their charges, and what keys have spent of their budgets. Runs before an
 * api process admits anything, and after Redis has changed: a Redis without its last writes would let accounts spend their
 * balance twice.
 */
export async function syncRedis(db: Database, redis: RedisClient): Promise<void> {
  await syncKeyFlags(db, redis);
  // First, because a job that is settled again after the sums are raised counts twice.
  await dropSettledHolds(db, redis);
  await syncAccounts(db, redis, (accounts) => raiseMoney(db, redis, accounts));
}

/** Raises the charges of accounts, and their keys' budgets, to those of the ledger. */
export async function raiseMoney(db: Database, redis: RedisClient, accounts: readonly string[]): Promise<void> {
  await raiseCharges(db, redis, accounts);
  await raiseBudgetsOf(db, redis, accounts);
}

async function raiseBudgetsOf(db: Database, redis: RedisClient, accounts: readonly string[]): Promise<void> {
  const keys = await db
    .selectFrom('api_keys')
    .select(['id', 'account_id', 'budget_period'])
    .where('account_id', 'in', accounts)
    .where('budget', 'is not', null)
    .where('revoked_at', 'is', null)
    .execute();
  const budgets = keys.map(({ id, account_id: account, budget_period: period }) => ({
    ...{ account, apiKeyId: id, period: (period ?? 'never') as BudgetPeriod },
  }));
  const [seconds] = await redis.time();
  const now = Number(seconds) * 1000;
  await forgetEarlierPeriods(redis, budgets, now);
  await raiseBudgets(db, redis, budgets, now);
}

/**
 * Forgets the budgets that Redis has of an earlier period: it may have lost the current one, which admission would begin with
 * nothing spent. Admission loads what is missing.
 */
async function forgetEarlierPeriods(redis: RedisClient, budgets: readonly BudgetedKey[], now: number): Promise<void> {
  await Promise.all(
    budgets.map(async ({ account, apiKeyId, period }) => {
      const known = await redis.hget(accountKeys.budget(account, apiKeyId), 'period');
      if (known !== null && known < budgetPeriodAt(period, now).name) await forgetBudget(redis, account, apiKeyId);
    }),
  );
}

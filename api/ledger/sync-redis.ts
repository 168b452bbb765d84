import {
  type BudgetedKey,
  type BudgetPeriod,
  budgetHash,
  budgetPeriodAt,
  forgetBudget,
} from '../../shared/accounts/account-money.ts';
import { syncKeyFlags } from '../../shared/accounts/key-flag.ts';
import { syncAccounts } from '../../shared/accounts/sync-accounts.ts';
import type { Database } from '../../shared/database/database.ts';
import { dropSettledHolds, raiseBudgets, raiseCharges } from '../../shared/money/raise-to-ledger.ts';
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
    .select(['id', 'account_id', 'budget_id', 'budget_period'])
    .where('account_id', 'in', accounts)
    .where('budget', 'is not', null)
    .where('revoked_at', 'is', null)
    .execute();
  const budgets = keys.map((key) => ({
    ...{ account: key.account_id, apiKeyId: key.id, budgetId: key.budget_id ?? undefined },
    period: (key.budget_period ?? 'never') as BudgetPeriod,
  }));
  const [seconds] = await redis.time();
  const now = Number(seconds) * 1000;
  await forgetStale(redis, budgets, now);
  await raiseBudgets(db, redis, budgets, now);
}

/**
 * Forgets the budgets that Redis has of an earlier period: it may have lost the current one, which admission would begin with
 * nothing spent. So are common ones while a process of the release before runs: it settles past them. Admission loads what is
 * missing.
 */
async function forgetStale(redis: RedisClient, budgets: readonly BudgetedKey[], now: number): Promise<void> {
  await Promise.all(
    budgets.map(async (budget) => {
      const [known, common] = await redis.hmget(budgetHash(budget), 'period', 'common');
      const isEarlier = known && known < budgetPeriodAt(budget.period, now).name;
      if (isEarlier || common) await forgetBudget(redis, budget.account, budget.apiKeyId);
    }),
  );
}

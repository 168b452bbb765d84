import { budgetPeriodAt, readBudget } from '../../../shared/accounts/account-money.ts';
import { type ApiKey, keyStatus } from '../../../shared/accounts/api-key.ts';
import type { Database } from '../../../shared/database/database.ts';
import { toDollars } from '../../../shared/money/cost.ts';
import { readBudgetKeys, readSpent } from '../../../shared/money/raise-to-ledger.ts';
import type { RedisClient } from '../../../shared/redis/redis.ts';

/** A key as shown in the console and to operators. Never its text, which only the response that creates it contains. */
export type KeyObject = Readonly<Record<string, unknown>> & { readonly id: string };

/** Shows a key, with its spending in the current period of its budget. Times are milliseconds since 1970. */
export async function keyObject(redis: RedisClient, db: Database, key: ApiKey): Promise<KeyObject> {
  const { budget } = key;
  const spent = await readSpentOf(redis, db, key);
  return {
    id: key.id,
    object: 'key',
    account: key.accountId,
    name: key.name,
    prefix: key.prefix,
    kind: key.kind,
    status: keyStatus(key, Date.now()),
    created_at: key.createdAt,
    last_used_at: key.lastUsedAt ?? null,
    expires_at: key.expiresAt ?? null,
    revoked_at: key.revokedAt ?? null,
    rotated_to: key.rotatedTo ?? null,
    capabilities: key.capabilities ?? null,
    models: key.models ?? null,
    rpm: key.rpm ?? null,
    tpm: key.tpm ?? null,
    concurrency: key.concurrency ?? null,
    model_limits: key.modelLimits ?? null,
    budget: budget ? { amount: toDollars(budget.amount), period: budget.period, spent: toDollars(spent) } : null,
    on_disconnect: key.onDisconnect ?? null,
    unsupported_parameters: key.unsupportedParameters ?? null,
    cache_breakpoints: key.cacheBreakpoints ?? null,
    priority: key.priority ?? null,
    max_priority: key.maxPriority ?? null,
    single_flight: key.singleFlight ?? null,
    cache_seconds: key.cacheSeconds ?? null,
    vendor_ids: key.vendorIds ?? null,
  };
}

/** What is spent of a key's budget, in nano-dollars: as Redis knows it, which has the latest jobs, or else the ledger. */
async function readSpentOf(redis: RedisClient, db: Database, key: ApiKey): Promise<number> {
  const { accountId, id, budgetId, budget } = key;
  if (budget === undefined) return 0;
  const known = await readBudget(redis, { account: accountId, apiKeyId: id, budgetId, period: budget.period });
  if (known !== undefined) return known;
  const { from } = budgetPeriodAt(budget.period, Date.now());
  const keys = (await readBudgetKeys(db, accountId, id)).map((spending) => spending.id);
  return await readSpent(db, accountId, keys, from);
}

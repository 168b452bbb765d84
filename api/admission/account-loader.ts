import {
  type AccountMoney,
  budgetPeriodAt,
  commonBudget,
  loadAccount,
  loadBudget,
  readMaxPriority,
} from '../../shared/accounts/account-money.ts';
import { readMoneyOfAccount } from '../../shared/accounts/accounts.ts';
import { tellRedis } from '../../shared/accounts/sync-accounts.ts';
import type { Database } from '../../shared/database/database.ts';
import { newJobId } from '../../shared/ids.ts';
import { raiseBudgets, readBudgetKeys, readSpent, type SpendingKey } from '../../shared/money/raise-to-ledger.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import type { RedisClock } from '../../shared/redis/redis-clock.ts';
import type { Caller } from '../auth/caller.ts';
import { BoundedReads } from '../bounds/bounded-reads.ts';

/** Timeout for reading an account from the database. */
const loadMs = 5000;

/** Loads accounts, and keys' spending against their budgets, from the database into Redis for admissions. */
export class AccountLoader {
  readonly #db: Database;
  readonly #redis: RedisClient;
  readonly #clock: RedisClock;
  readonly #reads = new BoundedReads(loadMs, 'Accounts cannot be checked for now.');

  constructor(db: Database, redis: RedisClient, clock: RedisClock) {
    this.#db = db;
    this.#redis = redis;
    this.#clock = clock;
  }

  /**
   * Loads what admission lacks.
   * @param what as reported by admission: `account` or `budget`
   * @throws ApiError 503 when the database does not respond in time.
   */
  async load(caller: Caller, what: string): Promise<void> {
    if (what === 'account') await this.#loadAccount(caller.account);
    else await this.#loadBudget(caller);
  }

  /**
   * The highest priority of an account's requests, as of now.
   * @throws ApiError 503 when Redis or the database does not respond in time.
   */
  async maxPriority(account: string): Promise<AccountMoney['maxPriority']> {
    return await this.#reads.read(async () => {
      const known = await readMaxPriority(this.#redis, account);
      if (known !== undefined) return known;
      // It is not loaded, or was loaded by a process of the release before.
      await loadAccount(this.#redis, account, newJobId(), () => readMoneyOfAccount(this.#db, account));
      const loaded = await readMaxPriority(this.#redis, account);
      if (loaded !== undefined) return loaded;
      await tellRedis(this.#db, this.#redis, account);
      return (await readMaxPriority(this.#redis, account)) ?? 'normal';
    });
  }

  async #loadAccount(account: string): Promise<void> {
    await this.#reads.read(() =>
      loadAccount(this.#redis, account, newJobId(), () => readMoneyOfAccount(this.#db, account)),
    );
  }

  async #loadBudget({ account, apiKeyId, budgetId, budget }: Caller): Promise<void> {
    if (budget === undefined) return;
    const { period } = budget;
    const key = { account, apiKeyId, budgetId, period };
    await this.#reads.read(async () => {
      // It may be asked for because Redis's clock was put right just now.
      await this.#clock.measure();
      const now = this.#clock.now();
      const { name, from } = budgetPeriodAt(period, now);
      const common = commonBudget(key);
      const keys = await readBudgetKeys(this.#db, account, apiKeyId);
      const spent = await readSpent(this.#db, account, idsOf(keys), from);
      // A key with another kind of period settles into its own.
      const alike = keys.filter((other) => other.id === apiKeyId || (other.period ?? period) === period);
      const shared = common === undefined ? undefined : { name: common, keys: idsOf(alike) };
      await loadBudget(this.#redis, { account, apiKeyId, period: name, common: shared }, spent);
      // Jobs that ended just now are not in the ledger yet.
      await raiseBudgets(this.#db, this.#redis, [key], now);
    });
  }
}

function idsOf(keys: readonly SpendingKey[]): string[] {
  return keys.map(({ id }) => id);
}

import { accountKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { isAheadScript, loadScript } from '../redis/script.ts';
import { writtenVersion } from '../runtime/wire-version.ts';

const load = loadScript<number>(new URL('./load-account.lua', import.meta.url));
const set = loadScript<number>(new URL('./set-account.lua', import.meta.url));
const loadSpent = loadScript<number>(new URL('./load-budget.lua', import.meta.url), isAheadScript);

/** An account's money as admission needs it. Nano-dollars. */
export interface AccountMoney {
  /** Total credit granted; undefined: unlimited. */
  readonly credit: number | undefined;
  /** Total cost of its jobs. */
  readonly charged: number;
  readonly isSuspended: boolean;
  /** Its share of a queue beside others that wait, against theirs: 1 for most. */
  readonly queueWeight: number;
  /** Whether its keys have equal shares of that, rather than its requests their order. */
  readonly queueByKey: boolean;
  /** The highest priority of its requests. */
  readonly maxPriority: 'normal' | 'high';
}

/** How often loading is restarted because the account changed meanwhile. */
const maxLoads = 5;
/** Lifetime of a load's name: longer than a slow database takes, so that only loads that never finish outlive it. */
const loadingMs = 600_000;

/**
 * Loads an account into Redis, which decides admissions: once, as Redis then keeps it up to date. An account missing there has
 * no unfinished jobs, and no record that is not in the database yet: those were lost with it.
 * @param loading unique name of this load
 * @param read reads the account from the database
 * @throws Error when the account keeps changing; whatever `read` throws.
 */
export async function loadAccount(
  redis: RedisClient,
  account: string,
  loading: string,
  read: () => Promise<AccountMoney>,
): Promise<void> {
  const keys = [accountKeys.account(account), accountKeys.loading(account)];
  for (let tries = 0; tries < maxLoads; tries++) {
    // Set before reading: a change that comes later removes it. Concurrent loaders share the name: if each wrote its own, none
    // of many would still find it. It expires, as a load may never finish. It is a separate key: a lifetime on the account itself
    // could delete a loaded account, or a charge.
    await redis.set(accountKeys.loading(account), `${loading}:${tries}`, 'PX', loadingMs, 'NX');
    const name = await redis.get(accountKeys.loading(account));
    const { credit, charged, isSuspended, queueWeight, queueByKey, maxPriority } = await read();
    const state = [credit ?? '', charged, isSuspended ? '1' : '0', queueWeight, queueByKey ? '1' : '0', maxPriority];
    if (await load(redis, keys, [name ?? '', ...state])) return;
  }
  throw new Error('an account could not be loaded: it is being changed');
}

/**
 * Sets an account's total credit for admission, at once and everywhere. Call it after the database has it.
 * @param credit nano-dollars; undefined: unlimited
 */
export async function setAccountCredit(redis: RedisClient, account: string, credit: number | undefined): Promise<void> {
  await set(redis, [accountKeys.account(account), accountKeys.loading(account)], ['credit', credit ?? '']);
}

/** Starts or stops refusing an account's requests. Call it after the database has it. */
export async function setAccountSuspended(redis: RedisClient, account: string, isSuspended: boolean): Promise<void> {
  const keys = [accountKeys.account(account), accountKeys.loading(account)];
  await set(redis, keys, ['suspended', isSuspended ? '1' : '0']);
}

/** Sets an account's share of the queues beside others. Call it after the database has it. */
export async function setAccountQueueWeight(redis: RedisClient, account: string, weight: number): Promise<void> {
  await set(redis, [accountKeys.account(account), accountKeys.loading(account)], ['weight', weight]);
}

/** Lets an account's keys share its turns in queues, or its requests have their order. Call it after the database has it. */
export async function setAccountQueueByKey(redis: RedisClient, account: string, isByKey: boolean): Promise<void> {
  const keys = [accountKeys.account(account), accountKeys.loading(account)];
  await set(redis, keys, ['by_key', isByKey ? '1' : '0']);
}

/** An account's share of the queues beside others, and whether its keys share it. */
export type QueueTerms = Pick<AccountMoney, 'queueWeight' | 'queueByKey'>;

/** Admission reads the same fields; see admit.lua. */
export async function readQueueTerms(redis: RedisClient, account: string): Promise<QueueTerms> {
  const [weight, byKey] = await redis.hmget(accountKeys.account(account), 'weight', 'by_key');
  return { queueWeight: Number(weight ?? 1), queueByKey: byKey === '1' };
}

/** Sets the highest priority of an account's requests. Call it after the database has it. */
export async function setAccountMaxPriority(
  redis: RedisClient,
  account: string,
  priority: AccountMoney['maxPriority'],
): Promise<void> {
  await set(redis, [accountKeys.account(account), accountKeys.loading(account)], ['priority', priority]);
}

/** The highest priority of an account's requests; undefined while Redis does not know it. */
export async function readMaxPriority(
  redis: RedisClient,
  account: string,
): Promise<AccountMoney['maxPriority'] | undefined> {
  return maxPriorityOf(await redis.hget(accountKeys.account(account), 'priority'));
}

/** Reads the field of the account in Redis. */
export function maxPriorityOf(field: string | null | undefined): AccountMoney['maxPriority'] | undefined {
  return field === 'high' || field === 'normal' ? field : undefined;
}

/** An account's money in Redis, in nano-dollars; undefined while it is not loaded there. */
export async function readAccountMoney(
  redis: RedisClient,
  account: string,
): Promise<{ credit: number | undefined; charged: number; held: number } | undefined> {
  const [credit, charged, held] = await redis.hmget(accountKeys.account(account), 'credit', 'charged', 'held');
  if (credit === null || credit === undefined) return undefined;
  return { credit: credit === '' ? undefined : Number(credit), charged: Number(charged ?? 0), held: Number(held ?? 0) };
}

/** How often a budget resets. */
export const budgetPeriods = ['day', 'week', 'month', 'never'] as const;
export type BudgetPeriod = (typeof budgetPeriods)[number];
/** The largest budget of a key, in billionths of a dollar, wherever it is set. */
export const maxBudget = 1_000_000 * 1_000_000_000;

/** The budget period that contains a time (ms since 1970), by the calendar in UTC: its name and start. */
export function budgetPeriodAt(period: BudgetPeriod, time: number): { readonly name: string; readonly from: number } {
  const date = new Date(time);
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()];
  if (period === 'never') return { name: 'never', from: 0 };
  const weekday = (date.getUTCDay() + 6) % 7;
  const from =
    period === 'month' ? Date.UTC(year, month) : Date.UTC(year, month, period === 'week' ? day - weekday : day);
  // Changing a key's period starts a new one, so the name contains the kind.
  return { name: `${period}:${new Date(from).toISOString().slice(0, 10)}`, from };
}

/** When a period began, from its name. */
function periodStart(name: string): number {
  return name === 'never' ? 0 : Date.parse(name.slice(name.indexOf(':') + 1));
}

/** A key with a budget. */
export interface BudgetedKey {
  readonly account: string;
  readonly apiKeyId: string;
  /** As of `ApiKey`. */
  readonly budgetId?: string | undefined;
  readonly period: BudgetPeriod;
}

/** The version from which on processes know common budgets. */
const commonSince = 2;

/**
 * Name of the budget that a key shares with those that it replaced, or that replaced it, if they have the same kind of period.
 * Undefined: it has its own, as each key while a process of the release before runs, which would settle into that.
 */
export function commonBudget({ budgetId, period }: Pick<BudgetedKey, 'budgetId' | 'period'>): string | undefined {
  return budgetId === undefined || writtenVersion() < commonSince ? undefined : `${budgetId}:${period}`;
}

/** The key in Redis of what was spent from a key's budget. */
export function budgetHash(key: BudgetedKey): string {
  return accountKeys.budget(key.account, commonBudget(key) ?? key.apiKeyId);
}

/** A budget to be loaded. */
export interface LoadedBudget {
  readonly account: string;
  readonly apiKeyId: string;
  /** Name of the period. */
  readonly period: string;
  /** The name of a common budget, and all keys that spend it. */
  readonly common?: { readonly name: string; readonly keys: readonly string[] } | undefined;
}

/**
 * Loads a key's spending since its budget's period began, unless Redis has it. The outbox is not in the ledger yet, so
 * `raiseBudgets` must follow.
 */
export async function loadBudget(
  redis: RedisClient,
  { account, apiKeyId, period, common }: LoadedBudget,
  spent: number,
): Promise<void> {
  const keys = [accountKeys.budget(account, common?.name ?? apiKeyId), accountKeys.reserved(account)];
  for (const id of common?.keys ?? [apiKeyId]) {
    keys.push(accountKeys.budget(account, id), accountKeys.running(account, id));
  }
  await loadSpent(redis, keys, [period, spent, periodStart(period), common?.name ?? '']);
}

/** Drops a key's budget from Redis after its settings changed, with what it shares: admission loads it again. */
export async function forgetBudget(redis: RedisClient, account: string, apiKeyId: string): Promise<void> {
  const own = accountKeys.budget(account, apiKeyId);
  const common = await redis.hget(own, 'common');
  await redis.del(own, ...(common ? [accountKeys.budget(account, common)] : []));
}

/**
 * The spending in the current period of an API key's budget, in nano-dollars, without unfinished jobs. Undefined while Redis has
 * none of this kind of period, or a later one: the key has not been used since its budget was set, since Redis lost it, or since
 * a clock that was ahead has been put right.
 */
export async function readBudget(redis: RedisClient, key: BudgetedKey): Promise<number | undefined> {
  const [name, spent] = await redis.hmget(budgetHash(key), 'period', 'spent');
  const current = budgetPeriodAt(key.period, Date.now()).name;
  if (!name || name.split(':')[0] !== current.split(':')[0] || name > current) return undefined;
  return name === current ? Number(spent ?? 0) : 0;
}

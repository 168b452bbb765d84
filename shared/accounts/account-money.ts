import { accountKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { loadScript } from '../redis/script.ts';

const load = loadScript<number>(new URL('./load-account.lua', import.meta.url));
const set = loadScript<number>(new URL('./set-account.lua', import.meta.url));
const loadSpent = loadScript<number>(new URL('./load-budget.lua', import.meta.url));

/** An account as admission needs to know it. Nano-dollars. */
export interface AccountMoney {
  /** All it was given; undefined: it is not limited. */
  readonly credit: number | undefined;
  /** All its jobs have cost. */
  readonly charged: number;
  readonly isSuspended: boolean;
}

/** How often a loading is begun anew because the account was changed in its middle. */
const loadings = 5;

/**
 * Brings an account into Redis, which decides admissions: once, for Redis keeps it up to date from then on. What is missing
 * there has no jobs under way, and no record that is not in the database yet: those were lost with it.
 * @param read the account as the database has it
 * @throws Error when it is changed all the time; whatever `read` throws.
 */
export async function loadAccount(
  redis: RedisClient,
  account: string,
  loading: string,
  read: () => Promise<AccountMoney>,
): Promise<void> {
  const key = accountKeys.account(account);
  for (let tries = 0; tries < loadings; tries++) {
    // Before the reading: a change that comes after it takes this away. Who loads it at the same time shares the name: were
    // each to write its own, none of many would find it still there.
    await redis.hsetnx(key, 'loading', `${loading}:${tries}`);
    const name = await redis.hget(key, 'loading');
    const { credit, charged, isSuspended } = await read();
    if (await load(redis, [key], [name ?? '', credit ?? '', charged, isSuspended ? '1' : '0'])) return;
  }
  throw new Error('an account could not be loaded: it is being changed');
}

/**
 * Tells admission what an account was given in all, at once and everywhere. To be called after the database has it.
 * @param credit nano-dollars; undefined: the account is not limited
 */
export async function setAccountCredit(redis: RedisClient, account: string, credit: number | undefined): Promise<void> {
  await set(redis, [accountKeys.account(account)], ['credit', credit ?? '']);
}

/** Refuses an account's requests from now on, or takes them again. To be called after the database has it. */
export async function setAccountSuspended(redis: RedisClient, account: string, isSuspended: boolean): Promise<void> {
  await set(redis, [accountKeys.account(account)], ['suspended', isSuspended ? '1' : '0']);
}

/** How an account stands in Redis, in nano-dollars; undefined while it is not loaded there. */
export async function readAccountMoney(
  redis: RedisClient,
  account: string,
): Promise<{ credit: number | undefined; charged: number; held: number } | undefined> {
  const [credit, charged, held] = await redis.hmget(accountKeys.account(account), 'credit', 'charged', 'held');
  if (credit === null || credit === undefined) return undefined;
  return { credit: credit === '' ? undefined : Number(credit), charged: Number(charged ?? 0), held: Number(held ?? 0) };
}

/** After how long a budget begins anew. */
export const budgetPeriods = ['day', 'week', 'month', 'never'] as const;
export type BudgetPeriod = (typeof budgetPeriods)[number];

/** The period of a budget that a time (ms since 1970) is in, by the calendar in UTC: its name, and when it began. */
export function budgetPeriodAt(period: BudgetPeriod, time: number): { readonly name: string; readonly from: number } {
  const date = new Date(time);
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()];
  if (period === 'never') return { name: 'never', from: 0 };
  const weekday = (date.getUTCDay() + 6) % 7;
  const from =
    period === 'month' ? Date.UTC(year, month) : Date.UTC(year, month, period === 'week' ? day - weekday : day);
  // A key whose period is changed begins a new one: the name says which kind it is.
  return { name: `${period}:${new Date(from).toISOString().slice(0, 10)}`, from };
}

/** When a period began, by its name. */
function periodStart(name: string): number {
  return name === 'never' ? 0 : Date.parse(name.slice(name.indexOf(':') + 1));
}

/**
 * Tells admission what an API key has spent since its budget's period began, unless it knows. What the outbox has is not in
 * the ledger yet: `raiseBudgets` is to follow.
 */
export async function loadBudget(
  redis: RedisClient,
  { account, apiKeyId, period }: { readonly account: string; readonly apiKeyId: string; readonly period: string },
  spent: number,
): Promise<void> {
  const keys = [
    accountKeys.budget(account, apiKeyId),
    accountKeys.running(account, apiKeyId),
    accountKeys.reserved(account),
  ];
  await loadSpent(redis, keys, [period, spent, periodStart(period)]);
}

/** Forgets what is known of a key's budget, whose settings have changed: admission asks for it again. */
export async function forgetBudget(redis: RedisClient, account: string, apiKeyId: string): Promise<void> {
  await redis.del(accountKeys.budget(account, apiKeyId));
}

/** What an API key has spent in the running period of its budget, in nano-dollars; what is under way is not counted. */
export async function readBudget(
  redis: RedisClient,
  account: string,
  apiKeyId: string,
  period: BudgetPeriod,
): Promise<number> {
  const [name, spent] = await redis.hmget(accountKeys.budget(account, apiKeyId), 'period', 'spent');
  return name === budgetPeriodAt(period, Date.now()).name ? Number(spent ?? 0) : 0;
}

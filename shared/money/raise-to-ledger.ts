import { setTimeout as delay } from 'node:timers/promises';
import { type BudgetedKey, type BudgetPeriod, budgetHash, budgetPeriodAt } from '../accounts/account-money.ts';
import type { Database } from '../database/database.ts';
import { saturatedSum } from '../database/saturated-sum.ts';
import { chargeField, type JobRecord, lateField, parseRecord, recordField } from '../jobs/settlement/outbox.ts';
import { readHoldMember, settle } from '../jobs/settlement/settle.ts';
import { accountKeys, jobKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { loadScript } from '../redis/script.ts';
import { groupBy } from '../runtime/group-by.ts';

const raiseScript = loadScript<number[]>(new URL('./raise.lua', import.meta.url));

/** Maximum number of ids per statement. */
const idsAtOnce = 500;
/** How often sums are read again because the ledger was written meanwhile, and the pause in between. */
const maxReadings = 10;
const readingsApartMs = 20;

/** A sum kept by Redis and the ledger: an account's charges, or a key's spending from its budget. */
interface LedgerSum {
  readonly account: string;
  /** All keys that spend the budget; left out: the account's own sum. */
  readonly keys?: readonly string[];
  /** Jobs created before do not count. */
  readonly from: number;
  /** Its key in Redis. */
  readonly hash: string;
  readonly field: 'charged' | 'spent';
  /** The budget's period: in another one nothing is raised. */
  readonly period?: string;
}

/**
 * Raises accounts' charges in Redis to the ledger's: a Redis that has lost its last writes would let them spend the credit
 * again. Nothing is ever lowered, as Redis may know of more than the ledger. Any process may call it at any time: see `raise`.
 */
export async function raiseCharges(db: Database, redis: RedisClient, accounts: readonly string[]): Promise<void> {
  const sums = accounts.map((account) => ({
    ...{ account, from: 0, hash: accountKeys.account(account), field: 'charged' as const },
  }));
  await raiseAll(db, redis, sums);
}

/**
 * Same as `raiseCharges`, for keys' spending in the current periods of their budgets.
 * @param now ms since 1970, by Redis's clock
 */
export async function raiseBudgets(
  db: Database,
  redis: RedisClient,
  budgets: readonly BudgetedKey[],
  now: number,
): Promise<void> {
  const sums = new Map<string, LedgerSum>();
  for (const budget of budgets) {
    const { account, apiKeyId, period } = budget;
    const hash = budgetHash(budget);
    if (sums.has(hash)) continue;
    const { name, from } = budgetPeriodAt(period, now);
    const keys = (await readBudgetKeys(db, account, apiKeyId)).map(({ id }) => id);
    sums.set(hash, { account, keys, from, hash, field: 'spent', period: name });
  }
  await raiseAll(db, redis, [...sums.values()]);
}

/** A key, and the kind of its budget's period; undefined: it has no budget. */
export interface SpendingKey {
  readonly id: string;
  readonly period: BudgetPeriod | undefined;
}

/** A key, those that it replaced, and those that replaced it: rotating a key neither resets its budget nor multiplies it. */
export async function readBudgetKeys(db: Database, account: string, apiKeyId: string): Promise<SpendingKey[]> {
  const rows = await db
    .selectFrom('api_keys')
    .select(['id', 'budget_period'])
    .where('account_id', '=', account)
    .where((is) =>
      is.or([
        is('id', '=', apiKeyId),
        is('budget_id', '=', is.selectFrom('api_keys').select('budget_id').where('id', '=', apiKeyId)),
      ]),
    )
    .execute();
  if (rows.length === 0) return [{ id: apiKeyId, period: undefined }];
  return rows.map(({ id, budget_period: period }) => ({ id, period: period ?? undefined }));
}

/** Spending of an account's keys since a time, by the ledger. */
export async function readSpent(db: Database, account: string, keys: readonly string[], from: number): Promise<number> {
  const { cost } = await db
    .selectFrom('usage_hours')
    .select(saturatedSum(db, 'cost').as('cost'))
    .where('account_id', '=', account)
    .where('hour_start', '>=', from)
    .where('api_key_id', 'in', keys)
    .executeTakeFirstOrThrow();
  return cost;
}

/**
 * Releases the holds of jobs that have ended in the ledger, and forgets those that have not ended in Redis. A Redis that has lost its
 * last writes has them again: settling them once more would charge them twice, as the ledger's sums include them already, and
 * workers would call their vendors again. One without a state is not run.
 */
export async function dropSettledHolds(db: Database, redis: RedisClient): Promise<void> {
  for (const key of accountKeys.allHolds()) {
    const held = (await redis.zrange(key, '0', '-1')).flatMap((member) => readHoldMember(member) ?? []);
    const ended = await readEnded(
      db,
      held.map(({ jobId }) => jobId),
    );
    const stale = held.filter(({ jobId }) => ended.has(jobId));
    await Promise.all(stale.map(({ jobId }) => forgetUnfinished(redis, jobId)));
    await settle(
      redis,
      stale.map((hold) => ({
        ...{ ...hold, retentionMs: 0, idempotency: '', outcome: 'failed', errorCode: undefined, began: true },
        ...{ record: '', cost: undefined, tokens: undefined },
      })),
    );
  }
}

/** Forgets a job, unless readers find its end. */
async function forgetUnfinished(redis: RedisClient, jobId: string): Promise<void> {
  const state = jobKeys.state(jobId);
  if ((await redis.hexists(state, 'terminal')) === 0) await redis.unlink(state, jobKeys.log(jobId));
}

async function raiseAll(db: Database, redis: RedisClient, sums: readonly LedgerSum[]): Promise<void> {
  const suspects = await findSuspects(db, redis, sums);
  for (const group of groupBy(suspects, ({ account }) => accountKeys.tag(account)).values()) {
    let left: readonly LedgerSum[] = group;
    for (let reading = 1; left.length > 0 && reading <= maxReadings; reading++) {
      if (reading > 1) await delay(readingsApartMs);
      left = await raise(db, redis, left, reading === maxReadings);
    }
  }
}

/**
 * Sums that may be too low in Redis, in few queries for many of them. The ledger is read after Redis here, so a record written
 * in between counts twice: a sum that suffices even then is sufficient.
 */
async function findSuspects(db: Database, redis: RedisClient, sums: readonly LedgerSum[]): Promise<LedgerSum[]> {
  const groups = [...groupBy(sums, ({ account }) => accountKeys.tag(account)).values()];
  const read = await Promise.all(
    groups.map(async (group) => {
      const { values, pending } = await readRedis(redis, group);
      return group.flatMap((sum, index) => {
        const [value, , period] = values[index] as (string | null)[];
        if (value === null || value === undefined || (sum.period !== undefined && period !== sum.period)) return [];
        const counted = [...pending.values()].filter((record) => countsIn(sum, record));
        return { sum, left: Number(value) - counted.reduce((all, { cost = 0 }) => all + cost, 0) };
      });
    }),
  );
  const present = read.flat();
  const ledger = await readLedger(
    db,
    present.map(({ sum }) => sum),
  );
  return present.flatMap(({ sum, left }, index) => ((ledger[index] as number) > left ? sum : []));
}

/**
 * Raises sums of one tag, once. The sum Redis should have is the ledger's, plus the part of the outbox not in the ledger yet.
 * The two cannot be read at the same moment, and records move from one to the other all the time. So the ledger is read before
 * and after Redis: if its sum is unchanged, no record moved in between, and the result is exact. It is never too high:
 * everything in the ledger or the outbox was charged before Redis was read.
 * @param isLast accept the result even if the ledger was written in between: it may be too low then, never too high
 * @returns the sums to be read again
 */
async function raise(
  db: Database,
  redis: RedisClient,
  sums: readonly LedgerSum[],
  isLast: boolean,
): Promise<LedgerSum[]> {
  const before = await readLedger(db, sums);
  const { values, pending } = await readRedis(redis, sums);
  const ended = await readEnded(db, [...pending.keys()]);
  const after = await readLedger(db, sums);
  const again: LedgerSum[] = [];
  const raising: { sum: LedgerSum; raised: string; amount: number }[] = [];
  for (const [index, sum] of sums.entries()) {
    const [value, raised, period] = values[index] as (string | null)[];
    if (value === null || value === undefined || (sum.period !== undefined && period !== sum.period)) continue;
    if (before[index] !== after[index] && !isLast) {
      again.push(sum);
      continue;
    }
    const unwritten = [...pending.values()].filter((record) => !ended.has(record.id) && countsIn(sum, record));
    const known = unwritten.reduce((all, { cost = 0 }) => all + cost, before[index] as number);
    const amount = Math.min(known, Number.MAX_SAFE_INTEGER) - Number(value);
    if (amount > 0) raising.push({ sum, raised: raised ?? '', amount });
  }
  if (raising.length === 0) return again;
  const replies = await raiseScript(
    redis,
    raising.map(({ sum }) => sum.hash),
    raising.flatMap(({ sum, raised, amount }) => [sum.field, raised, amount]),
  );
  return [...again, ...raising.flatMap(({ sum }, index) => (replies[index] === 1 ? [] : sum))];
}

function countsIn({ account, keys, from }: LedgerSum, record: JobRecord): boolean {
  if (record.account !== account || record.createdAt < from) return false;
  return keys === undefined || keys.includes(record.apiKeyId);
}

async function readLedger(db: Database, sums: readonly LedgerSum[]): Promise<number[]> {
  const accounts = sums.filter(({ keys }) => keys === undefined).map(({ account }) => account);
  const charged = new Map<string, number>();
  for (let start = 0; start < accounts.length; start += idsAtOnce) {
    const rows = await db
      .selectFrom('usage_hours')
      .select(['account_id', saturatedSum(db, 'cost').as('cost')])
      .where('account_id', 'in', accounts.slice(start, start + idsAtOnce))
      .groupBy('account_id')
      .execute();
    for (const { account_id: account, cost } of rows) charged.set(account, cost);
  }
  const read: number[] = [];
  for (const { account, keys, from } of sums) {
    read.push(keys === undefined ? (charged.get(account) ?? 0) : await readSpent(db, account, keys, from));
  }
  return read;
}

/** The sums in Redis and the records of the tag's outbox by job, read atomically. */
async function readRedis(
  redis: RedisClient,
  sums: readonly LedgerSum[],
): Promise<{ values: (string | null)[][]; pending: Map<string, JobRecord> }> {
  const transaction = redis.multi();
  for (const { hash, field } of sums) transaction.hmget(hash, field, 'raised', 'period');
  transaction.xrange(accountKeys.outbox((sums[0] as LedgerSum).account), '-', '+');
  const replies = (await transaction.exec()) ?? [];
  const failed = replies.find(([error]) => error !== null)?.[0];
  if (failed) throw failed;
  const values = replies.map(([, value]) => value);
  const entries = values.pop() as [id: string, fields: string[]][];
  const records = entries.flatMap(([, fields]) => recordOf(fields) ?? []);
  return { values: values as (string | null)[][], pending: new Map(records.map((record) => [record.id, record])) };
}

function recordOf(fields: readonly string[]): JobRecord | undefined {
  const given: Record<string, string | undefined> = {};
  for (let index = 0; index < fields.length; index += 2) given[fields[index] as string] = fields[index + 1];
  return parseRecord(given[recordField] ?? '', given[chargeField], given[lateField]);
}

/** The jobs among `ids` whose end is in the ledger. */
async function readEnded(db: Database, ids: readonly string[]): Promise<Set<string>> {
  const ended = new Set<string>();
  for (let start = 0; start < ids.length; start += idsAtOnce) {
    const rows = await db
      .selectFrom('jobs')
      .select('id')
      .where('id', 'in', ids.slice(start, start + idsAtOnce))
      .where('outcome', 'is not', null)
      .execute();
    for (const { id } of rows) ended.add(id);
  }
  return ended;
}

import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'kysely';
import { type BudgetPeriod, budgetPeriodAt } from '../accounts/account-money.ts';
import type { Capability } from '../capabilities/capability.ts';
import type { Database } from '../database/database.ts';
import { saturatedSum } from '../database/saturated-sum.ts';
import { chargeField, type JobRecord, lateField, parseRecord, recordField } from '../jobs/settlement/outbox.ts';
import { settle } from '../jobs/settlement/settle.ts';
import { accountKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { loadScript } from '../redis/script.ts';
import { groupBy } from '../runtime/group-by.ts';

const raiseScript = loadScript<number[]>(new URL('./raise.lua', import.meta.url));

/** Ids that one statement asks for. */
const idsAtOnce = 500;
/** How often sums are read again because the ledger was written meanwhile, and the wait in between. */
const maxReadings = 10;
const readingsApartMs = 20;

/** A sum that Redis keeps and the ledger knows: what an account was charged, or what a key has spent of its budget. */
interface LedgerSum {
  readonly account: string;
  /** The key whose budget it is, and the keys before it that were rotated; left out: the account's own. */
  readonly keys?: readonly string[];
  /** Jobs made before that do not count. */
  readonly from: number;
  /** Where it stands in Redis. */
  readonly hash: string;
  readonly field: 'charged' | 'spent';
  /** The budget's period: in another one there is nothing to be raised. */
  readonly period?: string;
}

/** A key with a budget. */
export interface BudgetedKey {
  readonly account: string;
  readonly apiKeyId: string;
  readonly period: BudgetPeriod;
}

/**
 * Raises what Redis says that accounts were charged to what the ledger knows: a Redis that has lost its last writes would let
 * them spend it again. Nothing is ever lowered: Redis may know of more than the ledger does. Every process may do it, at any
 * time: see `raise`.
 */
export async function raiseCharges(db: Database, redis: RedisClient, accounts: readonly string[]): Promise<void> {
  const sums = accounts.map((account) => ({
    ...{ account, from: 0, hash: accountKeys.account(account), field: 'charged' as const },
  }));
  await raiseAll(db, redis, sums);
}

/** The same of what keys have spent in the running periods of their budgets. */
export async function raiseBudgets(db: Database, redis: RedisClient, budgets: readonly BudgetedKey[]): Promise<void> {
  const sums: LedgerSum[] = [];
  for (const { account, apiKeyId, period } of budgets) {
    const { name, from } = budgetPeriodAt(period, Date.now());
    const keys = await readPredecessors(db, account, apiKeyId);
    sums.push({ account, keys, from, hash: accountKeys.budget(account, apiKeyId), field: 'spent', period: name });
  }
  await raiseAll(db, redis, sums);
}

/** A key and those that it took the place of: a budget is not spent anew because its key was rotated. */
export async function readPredecessors(db: Database, account: string, apiKeyId: string): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    with recursive chain (id) as (
      select id from api_keys where account_id = ${account} and id = ${apiKeyId}
      union
      select api_keys.id from api_keys join chain on api_keys.rotated_to = chain.id where api_keys.account_id = ${account}
    ) select id from chain`.execute(db);
  return rows.length === 0 ? [apiKeyId] : rows.map(({ id }) => id);
}

/** What keys of an account have spent since a time, by the ledger. */
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
 * Takes the holds off of jobs that the ledger knows as ended. A Redis that has lost its last writes holds them again; settled
 * once more they would be charged twice, for the ledger's sums have them already.
 */
export async function dropSettledHolds(db: Database, redis: RedisClient): Promise<void> {
  for (const key of accountKeys.allHolds()) {
    const members = await redis.zrange(key, '0', '-1');
    const ended = await readEnded(
      db,
      members.map((member) => member.split(' ', 1)[0] as string),
    );
    const stale = members.filter((member) => ended.has(member.split(' ', 1)[0] as string));
    await settle(
      redis,
      stale.map((member) => {
        const [jobId = '', account = '', apiKeyId = '', capability] = member.split(' ');
        return {
          ...{ jobId, account, apiKeyId, capability: capability as Capability, retentionMs: 0, idempotency: '' },
          ...{ outcome: 'failed', errorCode: undefined, began: true, record: '', cost: undefined, tokens: undefined },
        };
      }),
    );
  }
}

async function raiseAll(db: Database, redis: RedisClient, sums: readonly LedgerSum[]): Promise<void> {
  const suspects = await findSuspects(db, redis, sums);
  for (const group of groupBy(suspects, ({ account }) => accountKeys.tag(account)).values()) {
    let left: readonly LedgerSum[] = group;
    for (let reading = 1; left.length > 0; reading++) {
      left = await raise(db, redis, left, reading >= maxReadings);
      if (reading >= maxReadings) return;
      if (left.length > 0) await delay(readingsApartMs);
    }
  }
}

/**
 * Sums that may be too little in Redis, in few questions for many of them. The ledger is read after Redis here, so that a
 * record which goes over in between counts twice: what is enough even then is enough.
 */
async function findSuspects(db: Database, redis: RedisClient, sums: readonly LedgerSum[]): Promise<LedgerSum[]> {
  const groups = [...groupBy(sums, ({ account }) => accountKeys.tag(account)).values()];
  const read = await Promise.all(
    groups.map(async (group) => {
      const { stands, pending } = await readRedis(redis, group);
      return group.flatMap((sum, index) => {
        const [value, , period] = stands[index] as (string | null)[];
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
 * Raises sums of one tag, once. What Redis must have charged by now is what the ledger says, and what of the outbox is not in
 * the ledger yet. The two cannot be read at the same moment, and records go from one to the other all the time. So the ledger
 * is read before and after Redis: where its sum has stayed the same, no record went over in between, and the reckoning is
 * exact. It never is too much: what is in the ledger or in the outbox was charged before Redis was read.
 * @param isLast take what was read also where the ledger was written in between: it may be too little then, never too much
 * @returns the sums that are to be read again
 */
async function raise(
  db: Database,
  redis: RedisClient,
  sums: readonly LedgerSum[],
  isLast: boolean,
): Promise<LedgerSum[]> {
  const before = await readLedger(db, sums);
  const { stands, pending } = await readRedis(redis, sums);
  const ended = await readEnded(db, [...pending.keys()]);
  const after = await readLedger(db, sums);
  const again: LedgerSum[] = [];
  const raising: { sum: LedgerSum; raised: string; amount: number }[] = [];
  for (const [index, sum] of sums.entries()) {
    const [value, raised, period] = stands[index] as (string | null)[];
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

/** The sums as they stand in Redis, and the records of the tag's outbox by their jobs, as of one moment. */
async function readRedis(
  redis: RedisClient,
  sums: readonly LedgerSum[],
): Promise<{ stands: (string | null)[][]; pending: Map<string, JobRecord> }> {
  const transaction = redis.multi();
  for (const { hash, field } of sums) transaction.hmget(hash, field, 'raised', 'period');
  transaction.xrange(accountKeys.outbox((sums[0] as LedgerSum).account), '-', '+');
  const replies = (await transaction.exec()) ?? [];
  const failed = replies.find(([error]) => error !== null)?.[0];
  if (failed) throw failed;
  const values = replies.map(([, value]) => value);
  const entries = values.pop() as [id: string, fields: string[]][];
  const records = entries.flatMap(([, fields]) => recordOf(fields) ?? []);
  return { stands: values as (string | null)[][], pending: new Map(records.map((record) => [record.id, record])) };
}

function recordOf(fields: readonly string[]): JobRecord | undefined {
  const given: Record<string, string | undefined> = {};
  for (let index = 0; index < fields.length; index += 2) given[fields[index] as string] = fields[index + 1];
  return parseRecord(given[recordField] ?? '', given[chargeField], given[lateField]);
}

/** Which of some jobs have their end in the ledger. */
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

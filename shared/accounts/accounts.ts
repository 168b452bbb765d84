import { randomBytes } from 'node:crypto';
import type { Selectable } from 'kysely';
import type { Database } from '../database/database.ts';
import { saturatedSum } from '../database/saturated-sum.ts';
import type { AccountsTable } from '../database/tables.ts';
import { accountKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import {
  type AccountMoney,
  maxPriorityOf,
  setAccountCredit,
  setAccountMaxPriority,
  setAccountQueueByKey,
  setAccountQueueWeight,
  setAccountSuspended,
} from './account-money.ts';

/** The owner of API keys, credit and usage. Money is nano-dollars, times are milliseconds since 1970. */
interface Account {
  readonly id: string;
  readonly name: string;
  readonly createdAt: number;
  readonly isUnlimited: boolean;
  readonly suspendedAt: number | undefined;
  /** As of `AccountMoney`. */
  readonly queueWeight: number;
  readonly queueByKey: boolean;
  readonly maxPriority: AccountMoney['maxPriority'];
}

/** An account with its money from the database, which may lack jobs that ended a moment ago. */
export interface AccountWithMoney extends Account {
  /** Total credit granted. */
  readonly credit: number;
  /** Total cost of its jobs. */
  readonly charged: number;
}

/** Changes to an account; omitted fields stay. */
export interface AccountChange {
  readonly name?: string | undefined;
  readonly isUnlimited?: boolean | undefined;
  readonly isSuspended?: boolean | undefined;
  readonly queueWeight?: number | undefined;
  readonly queueByKey?: boolean | undefined;
  readonly maxPriority?: AccountMoney['maxPriority'] | undefined;
}

/** How often a write to Redis is compared with the database, in case the account changes concurrently. */
const maxPushes = 10;
const syncBatch = 500;

export function newAccountId(): string {
  return `acct_${randomBytes(12).toString('hex')}`;
}

/**
 * Creates a prepaid account unless the id exists. Its first credit, if any, is added in the same transaction. Redis needs no
 * update: admission loads accounts it does not know.
 * @param firstCredit `amount` in nano-dollars
 */
export async function ensureAccount(
  db: Database,
  account: {
    readonly id: string;
    readonly name: string;
    readonly isUnlimited?: boolean;
    readonly queueWeight?: number;
    readonly queueByKey?: boolean;
    readonly maxPriority?: AccountMoney['maxPriority'];
  },
  firstCredit?: { readonly amount: number; readonly note: string; readonly createdBy: string },
): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    const { numInsertedOrUpdatedRows: inserted } = await transaction
      .insertInto('accounts')
      .values({
        id: account.id,
        name: account.name,
        created_at: Date.now(),
        is_unlimited: account.isUnlimited ? 1 : 0,
        queue_weight: account.queueWeight ?? 1,
        queue_by_key: account.queueByKey ? 1 : 0,
        max_priority: account.maxPriority ?? 'normal',
      })
      .onConflict((conflict) => conflict.column('id').doNothing())
      .executeTakeFirst();
    if (!inserted || firstCredit === undefined || firstCredit.amount === 0) return;
    await transaction
      .insertInto('credits')
      .values({
        id: `credit_${randomBytes(12).toString('hex')}`,
        account_id: account.id,
        amount: firstCredit.amount,
        note: firstCredit.note,
        created_at: Date.now(),
        created_by: firstCredit.createdBy,
      })
      .execute();
  });
}

/** The account with this id; undefined if missing. */
export async function findAccount(db: Database, id: string): Promise<AccountWithMoney | undefined> {
  const row = await selectAccounts(db).where('accounts.id', '=', id).executeTakeFirst();
  return row && accountOf(row);
}

/**
 * Lists accounts, newest first.
 * @param after id of the account to start after; an unknown one returns nothing
 */
export async function listAccounts(
  db: Database,
  { limit, after }: { readonly limit: number; readonly after: string | undefined },
): Promise<AccountWithMoney[]> {
  let accounts = selectAccounts(db);
  if (after !== undefined) {
    const last = await db.selectFrom('accounts').select('created_at').where('id', '=', after).executeTakeFirst();
    if (last === undefined) return [];
    accounts = accounts.where((is) =>
      is(is.refTuple('accounts.created_at', 'accounts.id'), '<', is.tuple(last.created_at, after)),
    );
  }
  const rows = await accounts
    .orderBy('accounts.created_at', 'desc')
    .orderBy('accounts.id', 'desc')
    .limit(limit)
    .execute();
  return rows.map(accountOf);
}

/**
 * Changes an account: first in the database, which is durable, then in Redis, which every admission reads. If the second step
 * fails (the error is thrown), admission uses the old values until it is repeated or an api process starts. Idempotent.
 * @returns the account after the change; undefined if there is none
 */
export async function changeAccount(
  db: Database,
  redis: RedisClient,
  id: string,
  { name, isUnlimited, isSuspended, queueWeight, queueByKey, maxPriority }: AccountChange,
): Promise<AccountWithMoney | undefined> {
  const now = Date.now();
  await db
    .updateTable('accounts')
    .set((is) => ({
      ...(name === undefined ? {} : { name }),
      ...(isUnlimited === undefined ? {} : { is_unlimited: isUnlimited ? 1 : 0 }),
      ...(queueWeight === undefined ? {} : { queue_weight: queueWeight }),
      ...(queueByKey === undefined ? {} : { queue_by_key: queueByKey ? 1 : 0 }),
      ...(maxPriority === undefined ? {} : { max_priority: maxPriority }),
      ...(isSuspended === undefined
        ? {}
        : { suspended_at: isSuspended ? is.fn.coalesce('suspended_at', is.val(now)) : null }),
      id,
    }))
    .where('id', '=', id)
    .execute();
  const account = await findAccount(db, id);
  if (account !== undefined) await tellRedis(db, redis, id);
  return account;
}

/**
 * Reads an account's money, as admission needs it, from the database.
 * @throws Error if there is no such account.
 */
export async function readMoneyOfAccount(db: Database, id: string): Promise<AccountMoney> {
  const account = await findAccount(db, id);
  if (account === undefined) throw new Error('the account is not in the database');
  return {
    credit: account.isUnlimited ? undefined : account.credit,
    charged: account.charged,
    isSuspended: account.suspendedAt !== undefined,
    queueWeight: account.queueWeight,
    queueByKey: account.queueByKey,
    maxPriority: account.maxPriority,
  };
}

/**
 * Copies an account's state from the database to admission. Two concurrent changes may reach Redis in the opposite order, so it
 * compares again until Redis matches the database.
 */
export async function tellRedis(db: Database, redis: RedisClient, id: string): Promise<void> {
  let money = await readMoneyOfAccount(db, id);
  for (let pushes = 0; pushes < maxPushes; pushes++) {
    await setAccountCredit(redis, id, money.credit);
    await setAccountSuspended(redis, id, money.isSuspended);
    await setAccountQueueWeight(redis, id, money.queueWeight);
    await setAccountQueueByKey(redis, id, money.queueByKey);
    await setAccountMaxPriority(redis, id, money.maxPriority);
    const now = await readMoneyOfAccount(db, id);
    if (isSameState(now, money)) return;
    money = now;
  }
  throw new Error('the account is being changed all the time');
}

/**
 * Updates every account that admission knows. Call it before an api process admits anything, and when Redis comes back as
 * another instance: a Redis that was down during a change, or was restored from an older file, still has the old state. Redis
 * loads unknown accounts on demand, so only known ones are read.
 * @param onKnown receives those accounts, some hundreds at a time
 */
export async function syncAccounts(
  db: Database,
  redis: RedisClient,
  onKnown: (accounts: readonly string[]) => Promise<void> = async () => undefined,
): Promise<void> {
  for (let after = ''; ; ) {
    const page = db.selectFrom('accounts').select('id').where('id', '>', after).orderBy('id').limit(syncBatch);
    const ids = (await page.execute()).map(({ id }) => id);
    const states = await readAdmissionStates(redis, ids);
    const known = [...states.keys()];
    if (known.length > 0) {
      const changed = (await readCredits(db, known)).filter((account) => {
        return !isSameState(account, states.get(account.id) as AdmissionState);
      });
      await Promise.all(changed.map(({ id }) => tellRedis(db, redis, id)));
      await onKnown(known);
    }
    const last = ids.at(-1);
    if (last === undefined || ids.length < syncBatch) return;
    after = last;
  }
}

/** An account's state in admission. */
interface AdmissionState extends Omit<AccountMoney, 'charged' | 'maxPriority'> {
  /** Undefined: not known, as a process of the release before has loaded the account. */
  readonly maxPriority: AccountMoney['maxPriority'] | undefined;
}

function isSameState(one: AdmissionState, other: AdmissionState): boolean {
  const { credit, isSuspended, queueWeight, queueByKey, maxPriority } = one;
  return (
    credit === other.credit &&
    isSuspended === other.isSuspended &&
    queueWeight === other.queueWeight &&
    queueByKey === other.queueByKey &&
    maxPriority === other.maxPriority
  );
}

/** The state of those accounts that admission knows. */
async function readAdmissionStates(redis: RedisClient, ids: readonly string[]): Promise<Map<string, AdmissionState>> {
  const read = await Promise.all(
    ids.map((id) => redis.hmget(accountKeys.account(id), 'credit', 'suspended', 'weight', 'by_key', 'priority')),
  );
  return new Map(
    read.flatMap(([credit, suspended, weight, byKey, priority], index) => {
      if (credit === null || credit === undefined) return [];
      const state = {
        credit: credit === '' ? undefined : Number(credit),
        isSuspended: suspended === '1',
        queueWeight: Number(weight ?? 1),
        queueByKey: byKey === '1',
        maxPriority: maxPriorityOf(priority),
      };
      return [[ids[index] as string, state] as const];
    }),
  );
}

/** The same state from the database. Leaves out the charges, which take longest to read. */
async function readCredits(
  db: Database,
  ids: readonly string[],
): Promise<(AdmissionState & { readonly id: string })[]> {
  const rows = await db
    .selectFrom('accounts')
    .leftJoin('credits', 'credits.account_id', 'accounts.id')
    .select(['accounts.id', ...admissionColumns])
    .select(saturatedSum(db, 'credits.amount').as('credit'))
    .where('accounts.id', 'in', ids)
    .groupBy(['accounts.id', ...admissionColumns])
    .execute();
  return rows.map((row) => ({
    id: row.id,
    isSuspended: row.suspended_at !== null,
    credit: row.is_unlimited === 1 ? undefined : row.credit,
    queueWeight: row.queue_weight,
    queueByKey: row.queue_by_key === 1,
    maxPriority: row.max_priority,
  }));
}

/** What admission knows of an account, but for its money. */
const admissionColumns = [
  'accounts.is_unlimited',
  'accounts.suspended_at',
  'accounts.queue_weight',
  'accounts.queue_by_key',
  'accounts.max_priority',
] as const;

type AccountRow = Selectable<AccountsTable> & { credit: number | null; charged: number | null };

/** An account's hourly sums are far fewer than its jobs, and are written with them. */
function selectAccounts(db: Database) {
  return db
    .selectFrom('accounts')
    .selectAll('accounts')
    .select((is) => [
      is
        .selectFrom('credits')
        .whereRef('credits.account_id', '=', 'accounts.id')
        .select(saturatedSum(db, 'credits.amount').as('sum'))
        .as('credit'),
      is
        .selectFrom('usage_hours')
        .whereRef('usage_hours.account_id', '=', 'accounts.id')
        .select(saturatedSum(db, 'usage_hours.cost').as('sum'))
        .as('charged'),
    ]);
}

function accountOf(row: AccountRow): AccountWithMoney {
  return {
    id: row.id,
    name: row.name,
    createdAt: row.created_at,
    isUnlimited: row.is_unlimited === 1,
    suspendedAt: row.suspended_at ?? undefined,
    queueWeight: row.queue_weight,
    queueByKey: row.queue_by_key === 1,
    maxPriority: row.max_priority,
    credit: row.credit ?? 0,
    charged: row.charged ?? 0,
  };
}

import { randomBytes } from 'node:crypto';
import type { Selectable } from 'kysely';
import type { Database } from '../database/database.ts';
import { saturatedSum } from '../database/saturated-sum.ts';
import type { AccountsTable } from '../database/tables.ts';
import { accountKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { type AccountMoney, setAccountCredit, setAccountSuspended } from './account-money.ts';

/** Who owns API keys, credit and usage. Money is nano-dollars, times are milliseconds since 1970. */
interface Account {
  readonly id: string;
  readonly name: string;
  readonly createdAt: number;
  readonly isUnlimited: boolean;
  readonly suspendedAt: number | undefined;
}

/** An account and what the database knows of its money; jobs that ended a moment ago may not be in it yet. */
export interface AccountWithMoney extends Account {
  /** All it was given. */
  readonly credit: number;
  /** All its jobs have cost. */
  readonly charged: number;
}

/** What may be changed; what is left out stays. */
export interface AccountChange {
  readonly name?: string | undefined;
  readonly isUnlimited?: boolean | undefined;
  readonly isSuspended?: boolean | undefined;
}

/** How often what Redis was told is compared with the database, should the account be changed at the same time. */
const tellings = 10;
const syncBatch = 500;

export function newAccountId(): string {
  return `acct_${randomBytes(12).toString('hex')}`;
}

/**
 * Makes a prepaid account, unless there is one with this id. Its first credit, if any, is made with it or not at all.
 * Redis need not be told: admission asks for an account that it does not know.
 * @param firstCredit `amount` in nano-dollars
 */
export async function ensureAccount(
  db: Database,
  account: { readonly id: string; readonly name: string; readonly isUnlimited?: boolean },
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

/** The account with this id. */
export async function findAccount(db: Database, id: string): Promise<AccountWithMoney | undefined> {
  const row = await selectAccounts(db).where('accounts.id', '=', id).executeTakeFirst();
  return row && accountOf(row);
}

/** Accounts, the newest first. @param after id of the account behind which to begin; an unknown one: nothing */
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
 * Changes an account: first in the database, which lasts, then in Redis, which every admission asks. When the second step
 * fails (the error is thrown), what was is admitted until it is repeated or an api process starts. Repeating is harmless.
 * @returns the account as it is now; undefined when there is none
 */
export async function changeAccount(
  db: Database,
  redis: RedisClient,
  id: string,
  { name, isUnlimited, isSuspended }: AccountChange,
): Promise<AccountWithMoney | undefined> {
  const now = Date.now();
  await db
    .updateTable('accounts')
    .set((is) => ({
      ...(name === undefined ? {} : { name }),
      ...(isUnlimited === undefined ? {} : { is_unlimited: isUnlimited ? 1 : 0 }),
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

/** An account as admission needs to know it, read from the database. @throws Error when there is none. */
export async function readMoneyOfAccount(db: Database, id: string): Promise<AccountMoney> {
  const account = await findAccount(db, id);
  if (account === undefined) throw new Error('the account is not in the database');
  return {
    credit: account.isUnlimited ? undefined : account.credit,
    charged: account.charged,
    isSuspended: account.suspendedAt !== undefined,
  };
}

/**
 * Tells admission what the database says of an account. Two changes at the same time may reach Redis in the other order,
 * so whoever has told it looks again, until it is what the database still says.
 */
export async function tellRedis(db: Database, redis: RedisClient, id: string): Promise<void> {
  let money = await readMoneyOfAccount(db, id);
  for (let told = 0; told < tellings; told++) {
    await setAccountCredit(redis, id, money.credit);
    await setAccountSuspended(redis, id, money.isSuspended);
    const now = await readMoneyOfAccount(db, id);
    if (now.credit === money.credit && now.isSuspended === money.isSuspended) return;
    money = now;
  }
  throw new Error('the account is being changed all the time');
}

/**
 * Tells admission of every account that it knows. To be called before an api process admits anything, and when Redis has come
 * back as another one: a Redis that was stopped when an account was changed, or came back from an older file, still has it as
 * it was. What Redis does not know it asks for when it needs it, so only what it knows is read.
 * @param onKnown is given those accounts, some hundreds at a time
 */
export async function syncAccounts(
  db: Database,
  redis: RedisClient,
  onKnown: (accounts: readonly string[]) => Promise<void> = async () => undefined,
): Promise<void> {
  for (let after = ''; ; ) {
    const page = db.selectFrom('accounts').select('id').where('id', '>', after).orderBy('id').limit(syncBatch);
    const ids = (await page.execute()).map(({ id }) => id);
    const told = await readToldAccounts(redis, ids);
    const known = [...told.keys()];
    if (known.length > 0) {
      const changed = (await readCredits(db, known)).filter(({ id, credit, isSuspended }) => {
        const { credit: toldCredit, isSuspended: toldSuspended } = told.get(id) as ToldAccount;
        return credit !== toldCredit || isSuspended !== toldSuspended;
      });
      await Promise.all(changed.map(({ id }) => tellRedis(db, redis, id)));
      await onKnown(known);
    }
    const last = ids.at(-1);
    if (last === undefined || ids.length < syncBatch) return;
    after = last;
  }
}

/** What admission was told of an account. */
interface ToldAccount {
  /** Undefined: it is not limited. */
  readonly credit: number | undefined;
  readonly isSuspended: boolean;
}

/** What admission was told of those accounts that it knows. */
async function readToldAccounts(redis: RedisClient, ids: readonly string[]): Promise<Map<string, ToldAccount>> {
  const read = await Promise.all(ids.map((id) => redis.hmget(accountKeys.account(id), 'credit', 'suspended')));
  return new Map(
    read.flatMap(([credit, suspended], index) => {
      if (credit === null || credit === undefined) return [];
      const told = { credit: credit === '' ? undefined : Number(credit), isSuspended: suspended === '1' };
      return [[ids[index] as string, told] as const];
    }),
  );
}

/** What the database says of accounts that admission is told, without what they were charged, which takes longest. */
async function readCredits(db: Database, ids: readonly string[]): Promise<(ToldAccount & { readonly id: string })[]> {
  const rows = await db
    .selectFrom('accounts')
    .leftJoin('credits', 'credits.account_id', 'accounts.id')
    .select(['accounts.id', 'accounts.is_unlimited', 'accounts.suspended_at'])
    .select(saturatedSum(db, 'credits.amount').as('credit'))
    .where('accounts.id', 'in', ids)
    .groupBy(['accounts.id', 'accounts.is_unlimited', 'accounts.suspended_at'])
    .execute();
  return rows.map(({ id, is_unlimited: isUnlimited, suspended_at: suspendedAt, credit }) => ({
    ...{ id, isSuspended: suspendedAt !== null, credit: isUnlimited === 1 ? undefined : credit },
  }));
}

type AccountRow = Selectable<AccountsTable> & { credit: number | null; charged: number | null };

/** Sums of an account's hours are far fewer than its jobs, and written together with them. */
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
    credit: row.credit ?? 0,
    charged: row.charged ?? 0,
  };
}

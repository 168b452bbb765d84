import { randomBytes } from 'node:crypto';
import type { Selectable } from 'kysely';
import { contains } from '../database/contains.ts';
import type { Database } from '../database/database.ts';
import { saturatedSum } from '../database/saturated-sum.ts';
import type { AccountsTable } from '../database/tables.ts';
import type { AccountMoney } from './account-money.ts';

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

export function newAccountId(): string {
  return `acct_${randomBytes(12).toString('hex')}`;
}

/** An account to be created. */
interface NewAccount {
  readonly id: string;
  readonly name: string;
  readonly isUnlimited?: boolean;
  readonly queueWeight?: number;
  readonly queueByKey?: boolean;
  readonly maxPriority?: AccountMoney['maxPriority'];
}

/** The first credit of an account; `amount` in nano-dollars. */
interface FirstCredit {
  readonly amount: number;
  readonly note: string;
  readonly createdBy: string;
}

/**
 * Creates a prepaid account unless the id exists. Its first credit, if any, is added in the same transaction. Redis needs no
 * update: admission loads accounts it does not know.
 */
export async function ensureAccount(db: Database, account: NewAccount, firstCredit?: FirstCredit): Promise<void> {
  await db.transaction().execute((transaction) => ensureAccountIn(transaction, account, firstCredit));
}

/** The same within a transaction. */
export async function ensureAccountIn(
  transaction: Database,
  account: NewAccount,
  firstCredit?: FirstCredit,
): Promise<void> {
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
}

/** The account with this id; undefined if missing. */
export async function findAccount(db: Database, id: string): Promise<AccountWithMoney | undefined> {
  const row = await selectAccounts(db).where('accounts.id', '=', id).executeTakeFirst();
  return row && accountOf(row);
}

/** Selects accounts. */
export interface AccountFilter {
  readonly limit: number;
  /** Id of the account to start after; an unknown one returns nothing. */
  readonly after: string | undefined;
  /** Part of the name, case-insensitive, or an id. */
  readonly search?: string | undefined;
}

/** Lists accounts, newest first. */
export async function listAccounts(db: Database, { limit, after, search }: AccountFilter): Promise<AccountWithMoney[]> {
  let accounts = selectAccounts(db);
  if (search !== undefined) {
    accounts = accounts.where((is) => is.or([contains('accounts.name', search), is('accounts.id', '=', search)]));
  }
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

import { createHash, randomBytes } from 'node:crypto';
import { PostgresAdapter, type Selectable } from 'kysely';
import type { Database } from '../database/database.ts';
import type { CreditsTable } from '../database/tables.ts';
import { ApiError } from '../errors.ts';
import type { RedisClient } from '../redis/redis.ts';
import { findAccount } from './accounts.ts';
import { tellRedisEventually } from './sync-accounts.ts';

/** Credit added to or removed from an account. Nano-dollars; the time is milliseconds since 1970. */
export interface Credit {
  readonly id: string;
  readonly accountId: string;
  /** Negative if removed. */
  readonly amount: number;
  readonly note: string;
  readonly createdAt: number;
  /** The user or API key that made the change. */
  readonly createdBy: string;
}

export interface NewCredit extends Pick<Credit, 'accountId' | 'amount' | 'note' | 'createdBy'> {
  /** A repeat with it adds nothing, and gets the credit that was added first. */
  readonly idempotencyKey?: string | undefined;
  /** Called ahead of the first write: what it throws ends it. */
  readonly beforeWrite?: () => void;
}

/** Maximum total credit of an account: nine million dollars. Sums in nano-dollars stay below 2^53. */
export const maxCredit = 9_000_000 * 1_000_000_000;

/**
 * Adds credit to an account, or removes some: first in the database, then in Redis. Once the database has it, it is done: an
 * error would have it repeated, and so added twice. A Redis that cannot be told now is told later. At most the remaining credit, as the database knows it, can be removed: the cost of jobs cannot be taken back. Unfinished jobs are still charged,
 * so the balance may fall below zero until credit is added.
 * @returns `short`: more would be removed than remains; `too_much`: the account would exceed `maxCredit`; `reused`: its
 * idempotency key has added another amount or note
 * @throws ApiError 500 `outcome_unknown` if its commit got no reply, and the database cannot tell now whether it has it
 */
export async function addCredit(
  db: Database,
  redis: RedisClient,
  { accountId, amount, note, createdBy, idempotencyKey, beforeWrite }: NewCredit,
): Promise<Credit | 'short' | 'too_much' | 'no_account' | 'reused'> {
  const row: Selectable<CreditsTable> = {
    id: newCreditId(accountId, idempotencyKey),
    account_id: accountId,
    amount,
    note,
    created_at: Date.now(),
    created_by: createdBy,
  };
  let isInserted = false;
  let earlier: Selectable<CreditsTable> | undefined;
  const adding = db.transaction().execute(async (transaction) => {
    // Two concurrent removals must not both see the same credit.
    await lockAccount(transaction, accountId);
    const account = await findAccount(transaction, accountId);
    if (account === undefined) return 'no_account';
    earlier = await transaction.selectFrom('credits').selectAll().where('id', '=', row.id).executeTakeFirst();
    if (earlier !== undefined) return earlier.amount === amount && earlier.note === note ? undefined : 'reused';
    if (amount < 0 && account.credit - account.charged + amount < 0) return 'short';
    if (account.credit + amount > maxCredit) return 'too_much';
    beforeWrite?.();
    await transaction.insertInto('credits').values(row).execute();
    isInserted = true;
    return undefined;
  });
  const refusal = await adding.catch(async (error) => {
    // Only a commit can succeed and still fail: its reply is lost with the connection.
    if (isInserted && (await hasCredit(db, row))) return undefined;
    throw error;
  });
  if (refusal !== undefined) return refusal;
  await tellRedisEventually(db, redis, accountId);
  return creditOf(earlier ?? row);
}

/** The same for the same idempotency key of an account. */
function newCreditId(accountId: string, idempotencyKey: string | undefined): string {
  const bytes =
    idempotencyKey === undefined
      ? randomBytes(12)
      : createHash('sha256').update(`${accountId}\n${idempotencyKey}`).digest().subarray(0, 12);
  return `credit_${bytes.toString('hex')}`;
}

/** Makes others that lock the account wait until the transaction ends. SQLite has one writer anyway. */
async function lockAccount(transaction: Database, id: string): Promise<void> {
  if (!(transaction.getExecutor().adapter instanceof PostgresAdapter)) return;
  await transaction.selectFrom('accounts').select('id').where('id', '=', id).forUpdate().execute();
}

/** Whether the database has a credit whose commit may still be under way there. @throws ApiError if it cannot tell */
async function hasCredit(
  db: Database,
  { id, account_id: accountId }: Pick<Selectable<CreditsTable>, 'id' | 'account_id'>,
): Promise<boolean> {
  try {
    return await db.transaction().execute(async (transaction) => {
      await lockAccount(transaction, accountId);
      return (await transaction.selectFrom('credits').select('id').where('id', '=', id).execute()).length > 0;
    });
  } catch (cause) {
    const message =
      'The database did not say whether the credit was added. Look at the credits of the account before you repeat it.';
    throw new ApiError('outcome_unknown', message, { cause });
  }
}

/**
 * Lists an account's credits, newest first; undefined if it has none with the id `after`.
 * @param after id of the credit to start after
 */
export async function listCredits(
  db: Database,
  accountId: string,
  { limit, after }: { readonly limit: number; readonly after: string | undefined },
): Promise<Credit[] | undefined> {
  let credits = db.selectFrom('credits').selectAll().where('account_id', '=', accountId);
  if (after !== undefined) {
    const last = await credits.where('id', '=', after).executeTakeFirst();
    if (last === undefined) return undefined;
    credits = credits.where((is) => is(is.refTuple('created_at', 'id'), '<', is.tuple(last.created_at, after)));
  }
  const rows = await credits.orderBy('created_at', 'desc').orderBy('id', 'desc').limit(limit).execute();
  return rows.map(creditOf);
}

function creditOf(row: Selectable<CreditsTable>): Credit {
  return {
    id: row.id,
    accountId: row.account_id,
    amount: row.amount,
    note: row.note,
    createdAt: row.created_at,
    createdBy: row.created_by,
  };
}

import { randomBytes } from 'node:crypto';
import { PostgresAdapter, type Selectable } from 'kysely';
import type { Database } from '../database/database.ts';
import type { CreditsTable } from '../database/tables.ts';
import type { RedisClient } from '../redis/redis.ts';
import { findAccount, tellRedis } from './accounts.ts';

/** What was put on an account, or taken off it. Nano-dollars; the time is milliseconds since 1970. */
export interface Credit {
  readonly id: string;
  readonly accountId: string;
  /** Negative where it was taken off. */
  readonly amount: number;
  readonly note: string;
  readonly createdAt: number;
  /** The user or API key that did it. */
  readonly createdBy: string;
}

export type NewCredit = Pick<Credit, 'accountId' | 'amount' | 'note' | 'createdBy'>;

/** The most that an account may be given in all: nine million dollars. Sums in nano-dollars stay below 2^53. */
export const maxCredit = 9_000_000 * 1_000_000_000;

/**
 * Puts credit on an account, or takes some off: first in the database, then in Redis, as `changeAccount`. No more is taken
 * than is left of what the account was given, as the database knows it: what jobs have cost cannot be taken back. Jobs that
 * are under way are charged all the same; then the balance may be below zero until credit is added.
 * @returns `short`: more would be taken than is left; `too_much`: the account would have more than `maxCredit`
 */
export async function addCredit(
  db: Database,
  redis: RedisClient,
  { accountId, amount, note, createdBy }: NewCredit,
): Promise<Credit | 'short' | 'too_much' | 'no_account'> {
  const row: Selectable<CreditsTable> = {
    id: `credit_${randomBytes(12).toString('hex')}`,
    account_id: accountId,
    amount,
    note,
    created_at: Date.now(),
    created_by: createdBy,
  };
  const refusal = await db.transaction().execute(async (transaction) => {
    // Two that take at the same time must not both find it there. SQLite has one writer anyway.
    if (db.getExecutor().adapter instanceof PostgresAdapter) {
      await transaction.selectFrom('accounts').select('id').where('id', '=', accountId).forUpdate().execute();
    }
    const account = await findAccount(transaction, accountId);
    if (account === undefined) return 'no_account';
    if (amount < 0 && account.credit - account.charged + amount < 0) return 'short';
    if (account.credit + amount > maxCredit) return 'too_much';
    await transaction.insertInto('credits').values(row).execute();
    return undefined;
  });
  if (refusal !== undefined) return refusal;
  await tellRedis(db, redis, accountId);
  return creditOf(row);
}

/** An account's credits, the newest first. @param after id of the credit behind which to begin; an unknown one: nothing */
export async function listCredits(
  db: Database,
  accountId: string,
  { limit, after }: { readonly limit: number; readonly after: string | undefined },
): Promise<Credit[]> {
  let credits = db.selectFrom('credits').selectAll().where('account_id', '=', accountId);
  if (after !== undefined) {
    const last = await db.selectFrom('credits').select('created_at').where('id', '=', after).executeTakeFirst();
    if (last === undefined) return [];
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

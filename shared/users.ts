import type { Selectable } from 'kysely';
import type { Database } from './database/database.ts';
import type { UsersTable } from './database/tables.ts';

/** Who signs in to the console. */
export interface User {
  readonly id: string;
  readonly email: string;
  readonly name: string;
  readonly role: 'user' | 'operator';
  readonly accountId: string;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
}

/** Users, the newest first. @param after id of the user behind whom to begin; an unknown one: nothing */
export async function listUsers(
  db: Database,
  { limit, after, account }: { readonly limit: number; readonly after?: string | undefined; readonly account?: string },
): Promise<User[]> {
  let users = db.selectFrom('users').selectAll();
  if (account !== undefined) users = users.where('account_id', '=', account);
  if (after !== undefined) {
    const last = await db.selectFrom('users').select('created_at').where('id', '=', after).executeTakeFirst();
    if (last === undefined) return [];
    users = users.where((is) => is(is.refTuple('created_at', 'id'), '<', is.tuple(last.created_at, after)));
  }
  const rows = await users.orderBy('created_at', 'desc').orderBy('id', 'desc').limit(limit).execute();
  return rows.map(userOf);
}

export async function findUser(db: Database, id: string): Promise<User | undefined> {
  const row = await db.selectFrom('users').selectAll().where('id', '=', id).executeTakeFirst();
  return row && userOf(row);
}

/**
 * Changes what a user may do, and whose account it is done for, from the user's next request on.
 * @returns `last_operator`: nobody would be left who could undo it
 */
export async function changeUser(
  db: Database,
  id: string,
  { role, accountId }: { readonly role?: User['role'] | undefined; readonly accountId?: string | undefined },
): Promise<User | 'last_operator' | undefined> {
  return db.transaction().execute(async (transaction) => {
    if (role === 'user') {
      // All of them are locked, so that two operators cannot take the role from each other at once.
      const operators = await lockedOperators(transaction);
      if (operators.length === 1 && operators[0]?.id === id) return 'last_operator';
    }
    await transaction
      .updateTable('users')
      .set({
        ...(role === undefined ? {} : { role }),
        ...(accountId === undefined ? {} : { account_id: accountId }),
        updated_at: new Date().toISOString(),
      })
      .where('id', '=', id)
      .execute();
    return findUser(transaction, id);
  });
}

/** An update that changes nothing locks its rows in both databases. */
function lockedOperators(db: Database): Promise<{ id: string }[]> {
  return db.updateTable('users').set({ role: 'operator' }).where('role', '=', 'operator').returning('id').execute();
}

function userOf(row: Selectable<UsersTable>): User {
  return {
    id: row.id,
    email: row.email,
    name: row.name,
    role: row.role,
    accountId: row.account_id,
    createdAt: Date.parse(row.created_at),
  };
}

/** Lets a user sign in by the password alone again, and ends all sessions: whoever has lost a phone may have lost a browser. */
export async function removeAuthenticator(db: Database, userId: string): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    await transaction.deleteFrom('two_factors').where('user_id', '=', userId).execute();
    await transaction.updateTable('users').set({ two_factor_enabled: 0 }).where('id', '=', userId).execute();
    await transaction.deleteFrom('sessions').where('user_id', '=', userId).execute();
  });
}

import { randomBytes } from 'node:crypto';
import { type Selectable, sql } from 'kysely';
import type { Database } from '../database/database.ts';
import type { UsersTable } from '../database/tables.ts';
import { newAccountId } from './accounts.ts';

/** Who signs in to the console. */
export interface User {
  readonly id: string;
  readonly email: string;
  readonly name: string;
  readonly role: 'user' | 'operator';
  readonly accountId: string;
  /** Cannot sign in. */
  readonly isDisabled: boolean;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
}

/** What an operator may change of a user. */
export interface UserChanges {
  readonly role?: User['role'] | undefined;
  readonly accountId?: string | undefined;
  readonly isDisabled?: boolean | undefined;
}

/** Which users to list. */
export interface UserFilter {
  readonly limit: number;
  /** Id of the user behind whom to begin; an unknown one: nothing. */
  readonly after?: string | undefined;
  readonly account?: string | undefined;
  /** A part of the address or the name, in capitals or not. */
  readonly search?: string | undefined;
}

/** Lists users, the newest first. */
export async function listUsers(db: Database, { limit, after, account, search }: UserFilter): Promise<User[]> {
  let users = db.selectFrom('users').selectAll();
  if (account !== undefined) users = users.where('account_id', '=', account);
  if (search !== undefined) {
    const pattern = `%${search.toLowerCase().replaceAll(/[\\%_]/g, '\\$&')}%`;
    const has = (column: 'email' | 'name') => sql<boolean>`lower(${sql.ref(column)}) like ${pattern} escape '\\'`;
    users = users.where((is) => is.or([has('email'), has('name')]));
  }
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

/** What makes a user: in an account of their own where none is named. */
export interface NewUser {
  /** In lower case. */
  readonly email: string;
  readonly name: string;
  readonly role: User['role'];
  readonly accountId?: string | undefined;
}

/** Makes a user who cannot sign in yet: there is no password. Returns undefined where the address is taken. */
export async function createUser(db: Database, { email, name, role, accountId }: NewUser): Promise<User | undefined> {
  const now = new Date().toISOString();
  const row = await db
    .insertInto('users')
    .values({
      id: randomBytes(16).toString('hex'),
      ...{ name, email, role, account_id: accountId ?? newAccountId() },
      // The operator who invites vouches for the address.
      ...{ email_verified: 1, image: null, created_at: now, updated_at: now },
    })
    .onConflict((conflict) => conflict.column('email').doNothing())
    .returningAll()
    .executeTakeFirst();
  return row && userOf(row);
}

/**
 * Changes what a user may do, and whose account it is done for, from the user's next request on.
 * @returns `last_operator`: nobody would be left who could undo it
 */
export async function changeUser(
  db: Database,
  id: string,
  { role, accountId, isDisabled }: UserChanges,
): Promise<User | 'last_operator' | undefined> {
  return db.transaction().execute(async (transaction) => {
    if ((role === 'user' || isDisabled === true) && (await isLastOperator(transaction, id))) return 'last_operator';
    await transaction
      .updateTable('users')
      .set({
        ...(role === undefined ? {} : { role }),
        ...(accountId === undefined ? {} : { account_id: accountId }),
        ...(isDisabled === undefined ? {} : { disabled: Number(isDisabled) }),
        updated_at: new Date().toISOString(),
      })
      .where('id', '=', id)
      .execute();
    if (isDisabled === true) await transaction.deleteFrom('sessions').where('user_id', '=', id).execute();
    return findUser(transaction, id);
  });
}

/** Removes a user with all sessions; the account with its keys and jobs stays. Returns whether there was one. */
export async function deleteUser(db: Database, id: string): Promise<boolean | 'last_operator'> {
  return db.transaction().execute(async (transaction) => {
    if (await isLastOperator(transaction, id)) return 'last_operator';
    // What was sent to choose a password by.
    await transaction.deleteFrom('verifications').where('value', '=', id).execute();
    const { numDeletedRows } = await transaction.deleteFrom('users').where('id', '=', id).executeTakeFirst();
    return numDeletedRows > 0n;
  });
}

/** All operators who can sign in are locked meanwhile, so that two of them cannot take the role from each other at once. */
async function isLastOperator(db: Database, id: string): Promise<boolean> {
  const operators = await lockedOperators(db);
  return operators.length === 1 && operators[0]?.id === id;
}

/** An update that changes nothing locks its rows in both databases. */
function lockedOperators(db: Database): Promise<{ id: string }[]> {
  const operators = db.updateTable('users').set({ role: 'operator' }).where('role', '=', 'operator');
  return operators.where('disabled', '=', 0).returning('id').execute();
}

function userOf(row: Selectable<UsersTable>): User {
  return {
    id: row.id,
    email: row.email,
    name: row.name,
    role: row.role,
    accountId: row.account_id,
    isDisabled: row.disabled === 1,
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

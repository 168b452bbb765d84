import { randomBytes } from 'node:crypto';
import type { Selectable } from 'kysely';
import { contains } from '../database/contains.ts';
import type { Database } from '../database/database.ts';
import type { UsersTable } from '../database/tables.ts';
import { ensureAccountIn, newAccountId } from './accounts.ts';
import { forgetResetLinks } from './reset-link.ts';

/** A user of the console. */
export interface User {
  readonly id: string;
  readonly email: string;
  readonly name: string;
  readonly role: 'user' | 'operator';
  readonly accountId: string;
  /** Null before the first sign-in of somebody who signed up: that makes the account. */
  readonly accountName: string | null;
  /** A disabled user cannot sign in. */
  readonly isDisabled: boolean;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
}

/** Changes an operator may make to a user. */
export interface UserChanges {
  readonly role?: User['role'] | undefined;
  readonly accountId?: string | undefined;
  readonly isDisabled?: boolean | undefined;
}

/** Selects users. */
export interface UserFilter {
  readonly limit: number;
  /** Id of the user to start after; an unknown one returns nothing. */
  readonly after?: string | undefined;
  readonly account?: string | undefined;
  /** Part of the address or the name, case-insensitive. */
  readonly search?: string | undefined;
}

/** Lists users, newest first. */
export async function listUsers(db: Database, { limit, after, account, search }: UserFilter): Promise<User[]> {
  let users = selectUsers(db);
  if (account !== undefined) users = users.where('users.account_id', '=', account);
  if (search !== undefined) {
    users = users.where((is) => is.or([contains('users.email', search), contains('users.name', search)]));
  }
  if (after !== undefined) {
    const last = await db.selectFrom('users').select('created_at').where('id', '=', after).executeTakeFirst();
    if (last === undefined) return [];
    users = users.where((is) => is(is.refTuple('users.created_at', 'users.id'), '<', is.tuple(last.created_at, after)));
  }
  const rows = await users.orderBy('users.created_at', 'desc').orderBy('users.id', 'desc').limit(limit).execute();
  return rows.map(userOf);
}

export async function findUser(db: Database, id: string): Promise<User | undefined> {
  const row = await selectUsers(db).where('users.id', '=', id).executeTakeFirst();
  return row && userOf(row);
}

function selectUsers(db: Database) {
  return db
    .selectFrom('users')
    .leftJoin('accounts', 'accounts.id', 'users.account_id')
    .selectAll('users')
    .select('accounts.name as account_name');
}

/** A user to be created; without an account, with a new one. */
export interface NewUser {
  /** In lower case. */
  readonly email: string;
  readonly name: string;
  readonly role: User['role'];
  readonly accountId?: string | undefined;
  /** Credit of a new account, in nano-dollars. */
  readonly credit: number;
  /** Called ahead of the first write: what it throws ends it. */
  readonly beforeWrite?: () => void;
}

/**
 * Creates a user without a password, who cannot sign in yet. A new account is there at once: it can be given credit and keys
 * before the user comes. Returns undefined if the address is taken.
 */
export async function createUser(db: Database, user: NewUser): Promise<User | undefined> {
  const { email, name, role, accountId = newAccountId(), credit } = user;
  const now = new Date().toISOString();
  return db.transaction().execute(async (transaction) => {
    user.beforeWrite?.();
    const row = await transaction
      .insertInto('users')
      .values({
        id: randomBytes(16).toString('hex'),
        ...{ name, email, role, account_id: accountId },
        // The inviting operator vouches for the address.
        ...{ email_verified: 1, image: null, created_at: now, updated_at: now },
      })
      .onConflict((conflict) => conflict.column('email').doNothing())
      .returning('id')
      .executeTakeFirst();
    if (row === undefined) return undefined;
    if (user.accountId === undefined) {
      const firstCredit = { amount: credit, note: 'sign-up', createdBy: row.id };
      await ensureAccountIn(transaction, { id: accountId, name: email }, firstCredit);
    }
    return findUser(transaction, row.id);
  });
}

/**
 * Changes a user's role, account or access, from the user's next request on.
 * @returns `last_operator` if no operator would remain to undo it
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
    if (isDisabled === true) {
      await transaction.deleteFrom('sessions').where('user_id', '=', id).execute();
      await forgetResetLinks(transaction, id);
    }
    return findUser(transaction, id);
  });
}

/** Deletes a user with all sessions; the account with its keys and jobs stays. Returns whether the user existed. */
export async function deleteUser(db: Database, id: string): Promise<boolean | 'last_operator'> {
  return db.transaction().execute(async (transaction) => {
    if (await isLastOperator(transaction, id)) return 'last_operator';
    await forgetResetLinks(transaction, id);
    const { numDeletedRows } = await transaction.deleteFrom('users').where('id', '=', id).executeTakeFirst();
    return numDeletedRows > 0n;
  });
}

/** Locks all operators who can sign in, so that two of them cannot demote each other at once. */
async function isLastOperator(db: Database, id: string): Promise<boolean> {
  const operators = await lockedOperators(db);
  return operators.length === 1 && operators[0]?.id === id;
}

/** A no-op update locks its rows in both databases. Who was invited, and has no way to sign in yet, may never come. */
function lockedOperators(db: Database): Promise<{ id: string }[]> {
  const operators = db.updateTable('users').set({ role: 'operator' }).where('role', '=', 'operator');
  const ways = db.selectFrom('user_accounts').select('user_id');
  return operators.where('disabled', '=', 0).where('id', 'in', ways).returning('id').execute();
}

function userOf(row: Selectable<UsersTable> & { account_name: string | null }): User {
  return {
    id: row.id,
    email: row.email,
    name: row.name,
    role: row.role,
    accountId: row.account_id,
    accountName: row.account_name,
    isDisabled: row.disabled === 1,
    createdAt: Date.parse(row.created_at),
  };
}

/**
 * Removes the second factor, so that the password alone suffices, and ends all sessions: a user who lost a phone may have lost
 * a browser.
 */
export async function removeAuthenticator(db: Database, userId: string): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    await transaction.deleteFrom('two_factors').where('user_id', '=', userId).execute();
    await transaction.updateTable('users').set({ two_factor_enabled: 0 }).where('id', '=', userId).execute();
    await transaction.deleteFrom('sessions').where('user_id', '=', userId).execute();
  });
}

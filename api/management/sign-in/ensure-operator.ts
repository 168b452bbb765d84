import { randomBytes } from 'node:crypto';
import { defaultAccountId } from '../../../shared/accounts/api-keys.ts';
import { ConfigError } from '../../../shared/config/config-error.ts';
import type { Database } from '../../../shared/database/database.ts';
import { passwordProblem } from './password-rules.ts';

/**
 * Creates the operator of SLUICE_ADMIN_EMAIL, in the first account, unless a user has that address. An existing user keeps
 * the password, and is promoted only if the given password is that user's, because anybody may have signed up with the
 * address. This happens once for an address: one whom operators have deleted or demoted since stays so, while there is any.
 * Safe for concurrent processes.
 * @returns `other_password`: such a user exists, and is not promoted; `taken_back`: it was made an operator before, and is none now
 */
export async function ensureOperator(
  db: Database,
  { email, password }: { readonly email: string; readonly password: string },
): Promise<'created' | 'promoted' | 'there' | 'other_password' | 'taken_back'> {
  const [user, isMade] = [await findUser(db, email), await wasMade(db, email)];
  if (user?.role === 'operator') {
    if (!isMade) await rememberMade(db, email);
    return 'there';
  }
  if (isMade && (await hasOperator(db))) return 'taken_back';
  const problem = passwordProblem(password, email);
  if (problem !== undefined) throw new ConfigError(`SLUICE_ADMIN_PASSWORD cannot be used: ${problem.message}.`);
  // Loaded on demand: it takes half a second, and most starts do not need it.
  const { hashPassword, verifyPassword } = await import('better-auth/crypto');
  if (user === undefined) {
    if (await insertOperator(db, email, await hashPassword(password))) return 'created';
    return ensureOperator(db, { email, password });
  }
  const isOwn = user.password !== null && (await verifyPassword({ hash: user.password, password }));
  if (!isOwn) return 'other_password';
  await db.transaction().execute(async (transaction) => {
    const promoted = transaction.updateTable('users').set({ role: 'operator', email_verified: 1 });
    await promoted.where('id', '=', user.id).execute();
    await rememberMade(transaction, email);
  });
  return 'promoted';
}

/** Operators keep the last one of them who can sign in; a database that was changed by hand may have none. */
async function hasOperator(db: Database): Promise<boolean> {
  const ways = db.selectFrom('user_accounts').select('user_id');
  const operators = db.selectFrom('users').select('id').where('role', '=', 'operator').where('disabled', '=', 0);
  return (await operators.where('id', 'in', ways).limit(1).executeTakeFirst()) !== undefined;
}

async function wasMade(db: Database, email: string): Promise<boolean> {
  const row = await db.selectFrom('named_operators').select('email').where('email', '=', email).executeTakeFirst();
  return row !== undefined;
}

async function rememberMade(db: Database, email: string): Promise<void> {
  const row = { email, made_at: Date.now() };
  await db
    .insertInto('named_operators')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

function findUser(db: Database, email: string) {
  return db
    .selectFrom('users')
    .leftJoin('user_accounts', (join) =>
      join.onRef('user_accounts.user_id', '=', 'users.id').on('user_accounts.provider_id', '=', 'credential'),
    )
    .select(['users.id', 'users.role', 'user_accounts.password'])
    .where('users.email', '=', email)
    .executeTakeFirst();
}

/** Inserts the user, the password and that it was done, all or nothing. Returns false when another process was faster. */
async function insertOperator(db: Database, email: string, password: string): Promise<boolean> {
  const id = randomBytes(16).toString('hex');
  const now = new Date().toISOString();
  const times = { created_at: now, updated_at: now };
  return db.transaction().execute(async (transaction) => {
    const { numInsertedOrUpdatedRows: inserted } = await transaction
      .insertInto('users')
      .values({
        id,
        name: 'Operator',
        email,
        email_verified: 1,
        image: null,
        role: 'operator',
        account_id: defaultAccountId,
        ...times,
      })
      .onConflict((conflict) => conflict.column('email').doNothing())
      .executeTakeFirst();
    if (!inserted) return false;
    await transaction
      .insertInto('user_accounts')
      .values({
        id: randomBytes(16).toString('hex'),
        user_id: id,
        provider_id: 'credential',
        provider_account_id: id,
        password,
        access_token: null,
        refresh_token: null,
        id_token: null,
        access_token_expires_at: null,
        refresh_token_expires_at: null,
        scope: null,
        ...times,
      })
      .execute();
    await rememberMade(transaction, email);
    return true;
  });
}

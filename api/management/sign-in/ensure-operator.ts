import { randomBytes } from 'node:crypto';
import { defaultAccountId } from '../../../shared/accounts/api-keys.ts';
import { ConfigError } from '../../../shared/config/config-error.ts';
import type { Database } from '../../../shared/database/database.ts';
import { passwordProblem } from './password-rules.ts';

/**
 * Makes the operator of SLUICE_ADMIN_EMAIL, of the first account, unless there is a user with that address. A user who is
 * there keeps the password; one who is no operator becomes one, if the password is that user's: anybody may have signed up
 * with the address. Safe when several processes do it at once.
 * @returns `other_password`: such a user is there, and stays no operator
 */
export async function ensureOperator(
  db: Database,
  { email, password }: { readonly email: string; readonly password: string },
): Promise<'created' | 'promoted' | 'there' | 'other_password'> {
  const user = await findUser(db, email);
  if (user?.role === 'operator') return 'there';
  const problem = passwordProblem(password, email);
  if (problem !== undefined) throw new ConfigError(`SLUICE_ADMIN_PASSWORD cannot be used: ${problem.message}.`);
  // Loaded where it is needed: it takes half a second, which most starts can do without.
  const { hashPassword, verifyPassword } = await import('better-auth/crypto');
  if (user === undefined) {
    if (await insertOperator(db, email, await hashPassword(password))) return 'created';
    return ensureOperator(db, { email, password });
  }
  const isOwn = user.password !== null && (await verifyPassword({ hash: user.password, password }));
  if (!isOwn) return 'other_password';
  await db.updateTable('users').set({ role: 'operator', email_verified: 1 }).where('id', '=', user.id).execute();
  return 'promoted';
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

/** The user and the password, both or none. Returns false when another process was faster. */
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
    return true;
  });
}

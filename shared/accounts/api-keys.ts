import type { Database } from '../database/database.ts';
import type { ApiKey, NewApiKey } from './api-key.ts';
import { apiKeyOf, newKeyRow } from './api-key-row.ts';
import { hashApiKey, newApiKeyText, textColumns } from './api-key-text.ts';

export type {
  ApiKey,
  KeyKind,
  KeySettings,
  NewApiKey,
  UnsupportedParameters,
} from './api-key.ts';
export { hashApiKey, newApiKeyText };

/** The account that every database begins with. */
export const defaultAccountId = 'default';

/** Makes a key. Its text is in the answer and nowhere else. */
export async function createApiKey(db: Database, key: NewApiKey): Promise<{ id: string; key: string }> {
  const text = newApiKeyText();
  const row = newKeyRow(textColumns(text), key);
  await db.insertInto('api_keys').values(row).execute();
  return { id: row.id, key: text };
}

/**
 * Makes a given text a key of an account unless it is a key already. Safe when several processes do it at once. A revoked
 * key stays revoked: the caller warns, and does not refuse to start, for the other keys must go on working.
 */
export async function ensureApiKey(
  db: Database,
  text: string,
  key: NewApiKey = { accountId: defaultAccountId, name: 'SLUICE_BOOTSTRAP_KEY' },
): Promise<'created' | 'active' | 'revoked'> {
  const { numInsertedOrUpdatedRows: inserted } = await db
    .insertInto('api_keys')
    .values(newKeyRow(textColumns(text), key))
    .onConflict((conflict) => conflict.column('hash').doNothing())
    .executeTakeFirst();
  if (inserted) return 'created';
  const existing = await findApiKeyByHash(db, hashApiKey(text));
  return existing?.revokedAt === undefined ? 'active' : 'revoked';
}

/**
 * The playground's key of an account: it is not listed, cannot be changed, and its text is thrown away as it is made. There
 * is one, also when several processes ask at once.
 * @throws an error of the database where there is no such account.
 */
export async function ensureConsoleKey(db: Database, accountId: string): Promise<ApiKey> {
  const find = async (): Promise<ApiKey | undefined> => {
    const query = db.selectFrom('api_keys').selectAll().where('account_id', '=', accountId);
    const row = await query.where('kind', '=', 'console').executeTakeFirst();
    return row && apiKeyOf(row);
  };
  const existing = await find();
  if (existing !== undefined) return existing;
  await db
    .insertInto('api_keys')
    .values(newKeyRow(textColumns(newApiKeyText()), { accountId, name: 'Playground', kind: 'console' }))
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  const made = await find();
  if (made === undefined) throw new Error('the console key that was made is not there');
  return made;
}

/** The key with this hash, revoked or not. */
export async function findApiKeyByHash(db: Database, hash: string): Promise<ApiKey | undefined> {
  const row = await db.selectFrom('api_keys').selectAll().where('hash', '=', hash).executeTakeFirst();
  return row && apiKeyOf(row);
}

/** All keys but the hidden ones of the playground, the oldest first. */
export async function listApiKeys(db: Database): Promise<ApiKey[]> {
  const query = db.selectFrom('api_keys').selectAll().where('kind', '!=', 'console');
  const rows = await query.orderBy('created_at').orderBy('id').execute();
  return rows.map(apiKeyOf);
}

/** The keys that an id, or the beginning of a key as lists show it, can mean. */
export async function findApiKeys(db: Database, idOrPrefix: string): Promise<ApiKey[]> {
  const rows = await db
    .selectFrom('api_keys')
    .selectAll()
    .where((is) => is.or([is('id', '=', idOrPrefix), is('prefix', '=', idOrPrefix)]))
    .where('kind', '!=', 'console')
    .execute();
  return rows.map(apiKeyOf);
}

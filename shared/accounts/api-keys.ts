import { randomBytes } from 'node:crypto';
import type { Database } from '../database/database.ts';
import { hashApiKey } from '../ids.ts';
import type { ApiKey, NewApiKey } from './api-key.ts';
import { apiKeyOf, newKeyRow } from './api-key-row.ts';

export type {
  ApiKey,
  KeyKind,
  KeySettings,
  NewApiKey,
  UnsupportedParameters,
} from './api-key.ts';

/** The account that every new database contains. */
export const defaultAccountId = 'default';

/** The name of a key that is made of the setting. */
const bootstrapKeyName = 'SLUICE_BOOTSTRAP_KEY';

/** Creates a key. Its text is returned and stored nowhere. */
export async function createApiKey(db: Database, key: NewApiKey): Promise<{ id: string; key: string }> {
  const text = newApiKeyText();
  const row = newKeyRow(textColumns(text), key);
  await db.insertInto('api_keys').values(row).execute();
  return { id: row.id, key: text };
}

/**
 * Adds a given text as a key of an account unless it is a key already. Safe when several processes do it at once. A revoked key
 * stays revoked: the caller warns but still starts, as the other keys must keep working.
 */
export async function ensureApiKey(
  db: Database,
  text: string,
  key: NewApiKey = { accountId: defaultAccountId, name: bootstrapKeyName },
): Promise<'created' | 'active' | 'revoked'> {
  const find = (): Promise<ApiKey | undefined> => findApiKeyByHash(db, hashApiKey(text));
  // First, as a database that takes no writes has it as a rule.
  let existing = await find();
  if (existing === undefined) {
    const { numInsertedOrUpdatedRows: inserted } = await db
      .insertInto('api_keys')
      .values(newKeyRow(textColumns(text), key))
      .onConflict((conflict) => conflict.column('hash').doNothing())
      .executeTakeFirst();
    if (inserted) return 'created';
    existing = await find();
  }
  return existing?.revokedAt === undefined ? 'active' : 'revoked';
}

/** The ids of the keys made of other values of SLUICE_BOOTSTRAP_KEY than this one that are not revoked, newest first. */
export async function otherBootstrapKeys(db: Database, text: string): Promise<string[]> {
  const rows = await db
    .selectFrom('api_keys')
    .select('id')
    .where('account_id', '=', defaultAccountId)
    .where('name', '=', bootstrapKeyName)
    .where('hash', '!=', hashApiKey(text))
    .where('revoked_at', 'is', null)
    .orderBy('created_at', 'desc')
    .execute();
  return rows.map(({ id }) => id);
}

/**
 * The playground's key of an account: not listed, not changeable, its text discarded on creation. There is only one, even when
 * several processes ask at once.
 * @throws an error of the database if there is no such account.
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

/** All keys except the playground's hidden ones, oldest first. */
export async function listApiKeys(db: Database): Promise<ApiKey[]> {
  const query = db.selectFrom('api_keys').selectAll().where('kind', '!=', 'console');
  const rows = await query.orderBy('created_at').orderBy('id').execute();
  return rows.map(apiKeyOf);
}

/**
 * The keys that match an id, a key prefix as shown in lists, or a key's whole text, which is all that is known of a leaked one: also
 * with what stood around it, as in `Bearer sk-sluice-…`.
 */
export async function findApiKeys(db: Database, idOrText: string): Promise<ApiKey[]> {
  const [generated = idOrText.trim()] = generatedKeysIn(idOrText);
  const texts = [idOrText, generated];
  const rows = await db
    .selectFrom('api_keys')
    .selectAll()
    .where((is) =>
      is.or([is('id', '=', idOrText), is('prefix', '=', idOrText), is('hash', 'in', texts.map(hashApiKey))]),
    )
    .where('kind', '!=', 'console')
    .execute();
  return rows.map(apiKeyOf);
}

/** The whole generated keys in a text, each once. */
export function generatedKeysIn(text: string): string[] {
  return [...new Set(text.match(generatedWithin))];
}

const keyStart = 'sk-sluice-';
const generatedWithin = /sk-sluice-[A-Za-z0-9_-]{43}/g;
const generatedPattern = new RegExp(`^${generatedWithin.source}$`);

/** The text of a new key: 256 random bits. */
export function newApiKeyText(): string {
  return keyStart + randomBytes(32).toString('base64url');
}

/** The stored part of a key's text. The first characters of a user-chosen key may be much of its secret. */
export function textColumns(text: string): { hash: string; prefix: string } {
  return { hash: hashApiKey(text), prefix: text.slice(0, generatedPattern.test(text) ? keyStart.length + 6 : 4) };
}

import { createHash, randomBytes } from 'node:crypto';
import type { Selectable } from 'kysely';
import type { Database } from './database/database.ts';
import type { ApiKeysTable } from './database/tables.ts';
import { accountKeys } from './keys.ts';
import type { RedisClient } from './redis.ts';

/** The account that every database begins with. */
export const defaultAccountId = 'default';

const keyStart = 'sk-sluice-';
const generatedPattern = /^sk-sluice-[A-Za-z0-9_-]{43}$/;
const syncBatch = 500;

/** What an API key may do when its connection leaves: see the header `X-Sluice-On-Disconnect`. */
export type OnDisconnect = 'cancel' | 'continue';

/** What becomes of parameters that a model's vendor does not know and that change its answer. Hints are always dropped. */
export type UnsupportedParameters = 'refuse' | 'drop';

/** An API key as the rest of the code knows it; times are milliseconds since 1970. */
export interface ApiKey {
  readonly id: string;
  readonly accountId: string;
  readonly name: string;
  /** The key's first characters, by which people recognise it. */
  readonly prefix: string;
  readonly createdAt: number;
  readonly revokedAt: number | undefined;
  /** Unfinished jobs the key may have; undefined: the gateway's default. */
  readonly concurrency: number | undefined;
  readonly onDisconnect: OnDisconnect | undefined;
  /** Undefined: refused. */
  readonly unsupportedParameters: UnsupportedParameters | undefined;
}

export interface NewApiKey {
  readonly accountId: string;
  readonly name: string;
  readonly concurrency?: number;
  readonly onDisconnect?: OnDisconnect;
  readonly unsupportedParameters?: UnsupportedParameters;
}

/** SHA-256 of the whole key, hexadecimal: the only form in which a key is stored or looked up. */
export function hashApiKey(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

/** The text of a new key: 256 random bits. */
export function newApiKeyText(): string {
  return keyStart + randomBytes(32).toString('base64url');
}

/** Makes a key. Its text is in the answer and nowhere else. */
export async function createApiKey(db: Database, key: NewApiKey): Promise<{ id: string; key: string }> {
  const text = newApiKeyText();
  const row = rowOf(text, key);
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
  key: NewApiKey = { accountId: defaultAccountId, name: 'SLUICE_API_KEY' },
): Promise<'created' | 'active' | 'revoked'> {
  const { numInsertedOrUpdatedRows: inserted } = await db
    .insertInto('api_keys')
    .values(rowOf(text, key))
    .onConflict((conflict) => conflict.column('hash').doNothing())
    .executeTakeFirst();
  if (inserted) return 'created';
  const existing = await findApiKeyByHash(db, hashApiKey(text));
  return existing?.revokedAt === undefined ? 'active' : 'revoked';
}

/** The key with this hash, revoked or not. */
export async function findApiKeyByHash(db: Database, hash: string): Promise<ApiKey | undefined> {
  const row = await db.selectFrom('api_keys').selectAll().where('hash', '=', hash).executeTakeFirst();
  return row && apiKeyOf(row);
}

/** All keys, the oldest first. */
export async function listApiKeys(db: Database): Promise<ApiKey[]> {
  const rows = await db.selectFrom('api_keys').selectAll().orderBy('created_at').orderBy('id').execute();
  return rows.map(apiKeyOf);
}

/** The keys that an id, or the beginning of a key as lists show it, can mean. */
export async function findApiKeys(db: Database, idOrPrefix: string): Promise<ApiKey[]> {
  const rows = await db
    .selectFrom('api_keys')
    .selectAll()
    .where((is) => is.or([is('id', '=', idOrPrefix), is('prefix', '=', idOrPrefix)]))
    .execute();
  return rows.map(apiKeyOf);
}

/**
 * Revokes a key for good: first in the database, which lasts, then in Redis, which every admission asks. When the second
 * step fails (the error is thrown) the key may be admitted until the revocation is repeated or an api process starts.
 * Repeating is harmless.
 */
export async function revokeApiKey(db: Database, redis: RedisClient, key: ApiKey): Promise<void> {
  await revokeInDatabase(db, key);
  await redis.set(accountKeys.keyActive(key.accountId, key.id), '0');
}

/** Only the first step of `revokeApiKey`: enough while no gateway runs, since its start calls `syncRevokedKeys`. */
export async function revokeInDatabase(db: Database, key: ApiKey): Promise<void> {
  await db
    .updateTable('api_keys')
    .set({ revoked_at: Date.now() })
    .where('id', '=', key.id)
    .where('revoked_at', 'is', null)
    .execute();
}

/**
 * Tells Redis of all revoked keys. To be called before an api process admits anything: a Redis that was stopped when a
 * key was revoked, or came back from an older file, still has it as active.
 */
export async function syncRevokedKeys(db: Database, redis: RedisClient): Promise<void> {
  const keys = await db
    .selectFrom('api_keys')
    .select(['id', 'account_id'])
    .where('revoked_at', 'is not', null)
    .execute();
  for (let start = 0; start < keys.length; start += syncBatch) {
    const batch = keys.slice(start, start + syncBatch);
    await Promise.all(batch.map((key) => redis.set(accountKeys.keyActive(key.account_id, key.id), '0')));
  }
}

function rowOf(text: string, key: NewApiKey): Selectable<ApiKeysTable> {
  return {
    id: `key_${randomBytes(12).toString('hex')}`,
    account_id: key.accountId,
    name: key.name,
    hash: hashApiKey(text),
    // Of a text that somebody chose, the first characters may be much of its secret.
    prefix: text.slice(0, generatedPattern.test(text) ? keyStart.length + 6 : 4),
    created_at: Date.now(),
    revoked_at: null,
    concurrency: key.concurrency ?? null,
    on_disconnect: key.onDisconnect ?? null,
    unsupported_parameters: key.unsupportedParameters ?? null,
  };
}

function apiKeyOf(row: Selectable<ApiKeysTable>): ApiKey {
  return {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    prefix: row.prefix,
    createdAt: row.created_at,
    revokedAt: row.revoked_at ?? undefined,
    concurrency: row.concurrency ?? undefined,
    onDisconnect: row.on_disconnect ?? undefined,
    unsupportedParameters: row.unsupported_parameters ?? undefined,
  };
}

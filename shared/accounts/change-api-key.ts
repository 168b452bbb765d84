import type { Database } from '../database/database.ts';
import { ApiError } from '../errors.ts';
import type { RedisClient } from '../redis/redis.ts';
import { forgetBudget } from './account-money.ts';
import type { ApiKey, KeySettings, NewApiKey } from './api-key.ts';
import { apiKeyOf, newKeyRow, settingColumns } from './api-key-row.ts';
import { newApiKeyText, textColumns } from './api-keys.ts';
import { type FlaggedKey, writeKeyFlag } from './key-flag.ts';

/** Changes to a key; omitted fields stay, and undefined removes a limit. */
export type KeyChange = Partial<KeySettings> & { readonly name?: string };

/** A newly created key with its text, which is stored nowhere. */
export interface CreatedKey {
  readonly key: ApiKey;
  readonly text: string;
}

/** Maximum number of times a concurrently changing key is read again. */
const maxReads = 3;

/**
 * Changes a key: first in the database, which is durable, then in Redis, where every admission sees that its copy of the key is
 * stale. If the second step fails (the error is thrown), the change may not take effect until it is repeated or an api process
 * starts. Idempotent. Returns the key after the change, undefined if it no longer exists.
 */
export async function changeApiKey(
  db: Database,
  redis: RedisClient,
  { id }: FlaggedKey,
  { name, ...settings }: KeyChange,
): Promise<ApiKey | undefined> {
  const row = await db
    .updateTable('api_keys')
    .set((is) => ({
      ...settingColumns(settings),
      ...(name !== undefined && { name }),
      revision: is('revision', '+', 1),
    }))
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .returningAll()
    .executeTakeFirst();
  if (row === undefined) return undefined;
  // Before the change takes effect: admission's budget data belongs to the old settings.
  if ('budget' in settings) await forgetBudget(redis, row.account_id, id);
  return await announceKey(db, redis, apiKeyOf(row));
}

/**
 * Announces a key, as read from the database, to Redis and returns the key in force: a later version if it was changed
 * meanwhile, undefined if it was revoked.
 */
export async function announceKey(db: Database, redis: RedisClient, key: ApiKey): Promise<ApiKey | undefined> {
  let current = key;
  for (let reads = 0; reads < maxReads; reads++) {
    const announced = await writeKeyFlag(redis, current, current.revision);
    if (announced === 0) return undefined;
    if (announced === current.revision) return current;
    // Every change writes the database first, so what Redis knows can be read there, unless the database was restored from an older copy.
    const later = await readOrOvertake(db, current, announced);
    if (later === undefined) return undefined;
    current = later;
  }
  return current;
}

/** The current key; a revision behind the announced one is raised to one above it. */
async function readOrOvertake(db: Database, { id }: ApiKey, announced: number): Promise<ApiKey | undefined> {
  const query = db.selectFrom('api_keys').selectAll().where('id', '=', id).where('revoked_at', 'is', null);
  const row = await query.executeTakeFirst();
  if (row === undefined || row.revision >= announced) return row && apiKeyOf(row);
  await db
    .updateTable('api_keys')
    .set({ revision: announced + 1 })
    .where('id', '=', id)
    .where('revision', '<=', announced)
    .execute();
  const overtaking = await query.executeTakeFirst();
  return overtaking && apiKeyOf(overtaking);
}

/**
 * Revokes a key permanently: first in the database, which is durable, then in Redis, which every admission reads. If the second
 * step fails (the error is thrown), the key may be admitted until the revocation is repeated or an api process starts.
 * Idempotent.
 */
export async function revokeApiKey(db: Database, redis: RedisClient, key: FlaggedKey): Promise<void> {
  await revokeInDatabase(db, key);
  await writeKeyFlag(redis, key, 0);
}

/** Only the first step of `revokeApiKey`: enough while no gateway runs, since its start calls `syncKeyFlags`. */
export async function revokeInDatabase(db: Database, key: FlaggedKey): Promise<void> {
  await db
    .updateTable('api_keys')
    .set({ revoked_at: Date.now() })
    .where('id', '=', key.id)
    .where('revoked_at', 'is', null)
    .execute();
}

/**
 * Creates a key with the same name and settings, and lets the old one expire after `overlapMs` (unless it expires earlier), or
 * revokes it at once if that is 0. A key may be rotated again, to replace a text that was lost. All of them spend one budget (see
 * migration 028). Returns undefined if the old key is no longer valid. If Redis fails afterwards, the error is thrown: a repeat
 * tells it that the old key is revoked.
 * @param max valid keys that its account may have
 * @param now ms since 1970 by the clock by which keys expire
 * @throws ApiError 400 if there are so many, and the overlap would add one
 */
export async function rotateApiKey(
  db: Database,
  redis: RedisClient,
  key: FlaggedKey,
  overlapMs: number,
  max = Number.POSITIVE_INFINITY,
  now = Date.now(),
): Promise<CreatedKey | undefined> {
  const { id, accountId } = key;
  const text = newApiKeyText();
  const rotated = await db.transaction().execute(async (transaction) => {
    const isFull = overlapMs > 0 && max < Number.POSITIVE_INFINITY && (await countValid(transaction, accountId)) >= max;
    // Writing first locks the row, so the new key gets exactly what is read.
    const row = await transaction
      .updateTable('api_keys')
      .set((is) => ({ revision: is('revision', '+', 1) }))
      .where('id', '=', id)
      .where('revoked_at', 'is', null)
      .where((is) => is.or([is('expires_at', 'is', null), is('expires_at', '>', now)]))
      .returningAll()
      .executeTakeFirst();
    if (row === undefined) return undefined;
    if (isFull) {
      const way = 'revoke one first, or rotate this one without an overlap';
      throw new ApiError('invalid_request_error', `There are ${max} API keys already: ${way}.`);
    }
    const old = apiKeyOf(row);
    const created = await insertKey(transaction, text, { ...old, expiresAt: await findExpiry(transaction, old) });
    const expiresAt = Math.min(old.expiresAt ?? Number.POSITIVE_INFINITY, now + overlapMs);
    await transaction
      .updateTable('api_keys')
      .set({ rotated_to: created.id, ...(overlapMs === 0 ? { revoked_at: now } : { expires_at: expiresAt }) })
      .where('id', '=', id)
      .execute();
    const newest = transaction.selectFrom('api_keys').selectAll().where('id', '=', created.id);
    return { old, created: apiKeyOf(await newest.executeTakeFirstOrThrow()) };
  });
  if (rotated === undefined) {
    // It may have been revoked by a rotation that Redis was not told of.
    const row = db.selectFrom('api_keys').select('id').where('id', '=', id).where('revoked_at', 'is not', null);
    if ((await row.executeTakeFirst()) !== undefined) await writeKeyFlag(redis, key, 0);
    return undefined;
  }
  const { old, created } = rotated;
  if (overlapMs === 0) await writeKeyFlag(redis, old, 0);
  else await announceKey(db, redis, old);
  return { key: created, text };
}

/** When a key would expire without its rotations: as the newest key that replaced it does. */
async function findExpiry(transaction: Database, key: ApiKey): Promise<number | undefined> {
  let newest = key;
  while (newest.rotatedTo !== undefined) {
    const query = transaction.selectFrom('api_keys').selectAll().where('id', '=', newest.rotatedTo);
    const row = await query.executeTakeFirst();
    if (row === undefined) break;
    newest = apiKeyOf(row);
  }
  return newest.expiresAt;
}

/**
 * Creates a key unless its account already has `max` valid ones: then undefined.
 * @throws an error of the database if there is no such account.
 */
export async function createLimitedApiKey(db: Database, key: NewApiKey, max: number): Promise<CreatedKey | undefined> {
  const text = newApiKeyText();
  const created = await db.transaction().execute(async (transaction) => {
    return (await countValid(transaction, key.accountId)) >= max ? undefined : await insertKey(transaction, text, key);
  });
  return created && { key: created, text };
}

/** Counts an account's valid keys. Others that count them wait until the transaction ends. */
async function countValid(transaction: Database, accountId: string): Promise<number> {
  // Writing the account's row first serializes concurrent counts.
  const account = transaction.updateTable('accounts').set((is) => ({ name: is.ref('name') }));
  await account.where('id', '=', accountId).execute();
  const { count } = await transaction
    .selectFrom('api_keys')
    .select((is) => is.fn.countAll<number>().as('count'))
    .where('account_id', '=', accountId)
    .where('revoked_at', 'is', null)
    .where((is) => is.or([is('expires_at', 'is', null), is('expires_at', '>', Date.now())]))
    .executeTakeFirstOrThrow();
  return Number(count);
}

async function insertKey(db: Database, text: string, key: NewApiKey): Promise<ApiKey> {
  const row = newKeyRow(textColumns(text), key);
  return apiKeyOf(await db.insertInto('api_keys').values(row).returningAll().executeTakeFirstOrThrow());
}

import type { Database } from '../database/database.ts';
import { accountKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { loadScript } from '../redis/script.ts';
import type { ApiKey } from './api-key.ts';

/** Identifies a key's flag. */
export type FlaggedKey = Pick<ApiKey, 'id' | 'accountId'>;

const script = loadScript<string>(new URL('./key-flag.lua', import.meta.url));
const syncBatch = 1000;

/**
 * Writes a key's revision to Redis, or 0 for a revoked key, and returns the resulting revision: 0 if the key was revoked
 * meanwhile, a later one if it was changed again. See key-flag.lua.
 */
export async function writeKeyFlag(redis: RedisClient, key: FlaggedKey, revision: number): Promise<number> {
  return Number(await script(redis, [accountKeys.keyActive(key.accountId, key.id)], [revision]));
}

/**
 * Writes the flags of all revoked and changed keys to Redis. Call it before an api process admits anything: a Redis that was
 * down during a change, or was restored from an older file, still has the old flags.
 */
export async function syncKeyFlags(db: Database, redis: RedisClient): Promise<void> {
  for (let after = ''; ; ) {
    const keys = await db
      .selectFrom('api_keys')
      .select(['id', 'account_id', 'revoked_at', 'revision'])
      .where('id', '>', after)
      .where((is) => is.or([is('revoked_at', 'is not', null), is('revision', '>', 1)]))
      .orderBy('id')
      .limit(syncBatch)
      .execute();
    await Promise.all(
      keys.map(({ id, account_id: accountId, revoked_at: revokedAt, revision }) =>
        writeKeyFlag(redis, { id, accountId }, revokedAt === null ? revision : 0),
      ),
    );
    const last = keys.at(-1);
    if (last === undefined || keys.length < syncBatch) return;
    after = last.id;
  }
}

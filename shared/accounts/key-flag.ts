import type { Database } from '../database/database.ts';
import { accountKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { loadScript } from '../redis/script.ts';
import type { ApiKey } from './api-key.ts';

/** What names a key's flag. */
export type FlaggedKey = Pick<ApiKey, 'id' | 'accountId'>;

const script = loadScript<string>(new URL('./key-flag.lua', import.meta.url));
const syncBatch = 1000;

/**
 * Tells Redis a key's revision, or with 0 that it is revoked, and answers the revision that Redis has then: 0 where the key
 * was revoked meanwhile, a later one where it was changed again. See key-flag.lua.
 */
export async function writeKeyFlag(redis: RedisClient, key: FlaggedKey, revision: number): Promise<number> {
  return Number(await script(redis, [accountKeys.keyActive(key.accountId, key.id)], [revision]));
}

/**
 * Tells Redis of all keys that were revoked, and of those that were changed. To be called before an api process admits
 * anything: a Redis that was stopped then, or came back from an older file, still has them as they were.
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

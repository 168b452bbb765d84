import { createApiKey, defaultAccountId, findApiKeyByHash, type NewApiKey } from '../../shared/accounts/api-keys.ts';
import { revokeApiKey } from '../../shared/accounts/change-api-key.ts';
import { openDatabase } from '../../shared/database/database.ts';
import { hashApiKey } from '../../shared/ids.ts';
import { accountKeys } from '../../shared/redis/keys.ts';
import { connectRedis } from '../../shared/redis/redis.ts';
import { createLogger } from '../../shared/runtime/log.ts';
import type { TestGateway } from './gateway.ts';

/**
 * Makes an API key straight in the gateway's database and answers its text; of the first account, or of another, which is
 * made, without a limit on what it spends, where it does not exist.
 */
export async function makeApiKey(gateway: TestGateway, key: Partial<NewApiKey> = {}): Promise<string> {
  const db = await openDatabase(gateway);
  try {
    const { accountId = defaultAccountId, name = 'test' } = key;
    await db
      .insertInto('accounts')
      .values({ id: accountId, name: accountId, created_at: Date.now(), is_unlimited: 1 })
      .onConflict((conflict) => conflict.column('id').doNothing())
      .execute();
    return (await createApiKey(db, { ...key, accountId, name })).key;
  } finally {
    await db.destroy();
  }
}

/** An account that shares its Redis tag with another: what is named by the tag alone is common to both. */
export function accountOfTag(other = defaultAccountId): string {
  for (let number = 0; ; number++) {
    const account = `neighbour-${number}`;
    if (accountKeys.tag(account) === accountKeys.tag(other)) return account;
  }
}

/** Revokes a key as `npm run keys -- revoke` does. */
export async function revokeKey(gateway: TestGateway, text: string): Promise<void> {
  const db = await openDatabase(gateway);
  const redis = await connectRedis(gateway.redisUrl, createLogger('silent', 'test').log);
  try {
    const key = await findApiKeyByHash(db, hashApiKey(text));
    if (key === undefined) throw new Error('there is no such key');
    await revokeApiKey(db, redis.client, key);
  } finally {
    await redis.close();
    await db.destroy();
  }
}

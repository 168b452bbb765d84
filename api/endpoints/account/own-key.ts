import type { Middleware } from 'koa';
import { findAccount } from '../../../shared/accounts/accounts.ts';
import { findApiKey } from '../../../shared/accounts/list-keys.ts';
import type { Database } from '../../../shared/database/database.ts';
import { ApiError } from '../../../shared/errors.ts';
import type { RedisClient } from '../../../shared/redis/redis.ts';
import { BoundedReads, readMs } from '../../bounds/bounded-reads.ts';
import { type KeyObject, keyObject } from '../../management/keys/key-object.ts';
import { readBalance } from '../../management/sign-in/read-balance.ts';
import type { State } from '../../state.ts';

/** `GET /v1/key`: what the calling key is and may spend, and what its account has left. Never the key itself. */
export function readOwnKey({ redis }: { readonly redis: RedisClient }, db: Database): Middleware<State> {
  const reads = new BoundedReads(readMs, 'The API key cannot be read for now.');
  return async (ctx) => {
    ctx.state.endpoint = 'key';
    const { account: accountId, apiKeyId, kind } = ctx.state.caller;
    const read = await reads.read(async () => {
      const [key, account] = await Promise.all([
        findApiKey(db, { account: accountId, kinds: [kind] }, apiKeyId),
        findAccount(db, accountId),
      ]);
      if (key === undefined || account === undefined) return undefined;
      return { key: await keyObject(redis, db, key), account, balance: await readBalance(redis, account) };
    });
    if (read === undefined) throw new ApiError('not_found', 'There is no such API key.');
    const { key, account, balance } = read;
    ctx.body = { ...ownKey(key), account: { id: account.id, name: account.name, balance } };
  };
}

/** A key as shown to its own caller; null is no limit. Times are seconds since 1970, as everywhere under `/v1`. */
function ownKey(key: KeyObject) {
  const { id, name, created_at: createdAt, expires_at: expiresAt, capabilities, models } = key;
  const { rpm, tpm, concurrency, model_limits: modelLimits, budget } = key;
  return {
    ...{ id, object: 'key', name },
    created_at: Math.floor(Number(createdAt) / 1000),
    expires_at: typeof expiresAt === 'number' ? Math.floor(expiresAt / 1000) : null,
    ...{ capabilities, models },
    limits: { rpm, tpm, concurrency, models: modelLimits, budget },
  };
}

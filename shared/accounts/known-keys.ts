import { knownKey } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import type { ApiKey } from './api-key.ts';

/** Version of the format; others are not read. */
const version = 1;

/**
 * Keeps a valid key's settings in Redis for api processes that cannot ask the database. A copy may be out of date: it is valid
 * only while the key's flag has its revision, as for a caller cached in a process. Only standard keys are kept: what operators
 * do needs the database.
 */
export async function rememberKey(redis: RedisClient, { hash, lastUsedAt: _, ...key }: ApiKey): Promise<void> {
  const copy = { v: version, ...key, budgetId: key.budgetId ?? null };
  if (key.kind === 'standard') await redis.set(knownKey(hash), JSON.stringify(copy));
}

/** Removes a revoked key. */
export async function forgetKey(redis: RedisClient, hash: string): Promise<void> {
  await redis.del(knownKey(hash));
}

/** Returns the key with this hash as it was last read from the database; undefined: ask the database. */
export async function recallKey(redis: RedisClient, hash: string): Promise<ApiKey | undefined> {
  const text = await redis.get(knownKey(hash));
  if (text === null) return undefined;
  const { v, budgetId, ...key } = JSON.parse(text) as Omit<ApiKey, 'budgetId'> & {
    v: number;
    budgetId?: string | null;
  };
  // A process of the release before does not copy it: the key might spend a budget of its own.
  if (budgetId === undefined) return undefined;
  return v === version && key.kind === 'standard' ? { ...key, budgetId: budgetId ?? undefined, hash } : undefined;
}

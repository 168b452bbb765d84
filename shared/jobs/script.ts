import { readFileSync } from 'node:fs';
import type { RedisClient } from '../redis.ts';

/** A Lua script that runs atomically in Redis; the key list decides the node on a Cluster. */
export type Script<Reply> = (redis: RedisClient, keys: string[], args: (string | number)[]) => Promise<Reply>;

/**
 * Loads the `.lua` file beside its caller: `loadScript('begin', new URL('./begin.lua', import.meta.url))`. ioredis sends
 * its hash, and its text only where Redis does not know it yet. Scripts declare nothing but what their head says, and
 * all keys of one call share a hash tag.
 */
export function loadScript<Reply>(name: string, file: URL): Script<Reply> {
  const lua = readFileSync(file, 'utf8');
  const command = `sluice:${name}`;
  return (redis, keys, args) => {
    const client = redis as unknown as Record<string, (...args: unknown[]) => Promise<Reply>>;
    if (client[command] === undefined) redis.defineCommand(command, { lua });
    return (client[command] as (...args: unknown[]) => Promise<Reply>).call(redis, keys.length, ...keys, ...args);
  };
}

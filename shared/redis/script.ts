import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { RedisClient } from './redis.ts';

/** A Lua script that runs atomically in Redis; the key list decides the node on a Cluster. */
export type Script<Reply> = (redis: RedisClient, keys: string[], args: (string | number)[]) => Promise<Reply>;

/** The part of a script that tells a refusal of Redis from what went wrong with one of its jobs. */
export const refusalScript = new URL('./refusal.lua', import.meta.url);

/**
 * Loads the `.lua` file beside its caller: `loadScript(new URL('../jobs/begin.lua', import.meta.url))`. ioredis sends its hash,
 * and its text only where Redis does not know it yet. Scripts declare nothing but what their head says, and all keys of one
 * call share a hash tag.
 * @param parts what scripts have in common: it stands before the file
 */
export function loadScript<Reply>(file: URL, ...parts: readonly URL[]): Script<Reply> {
  const name = basename(file.pathname, '.lua');
  const lua = scriptText(name, [...parts, file]);
  const command = `sluice:${name}`;
  return (redis, keys, args) => {
    const client = redis as unknown as Record<string, (...args: unknown[]) => Promise<Reply>>;
    if (client[command] === undefined) redis.defineCommand(command, { lua });
    return (client[command] as (...args: unknown[]) => Promise<Reply>).call(redis, keys.length, ...keys, ...args);
  };
}

/** The text of a script as Redis gets it. Its name comes first, by which an operator knows it in the slow log. */
export function scriptText(name: string, files: readonly (URL | string)[]): string {
  return [`-- ${name}`, ...files.map((file) => readFileSync(file, 'utf8'))].join('\n');
}

import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { RedisClient } from './redis.ts';

/** A Lua script that runs atomically in Redis; the key list decides the node on a Cluster. */
export type Script<Reply> = (redis: RedisClient, keys: string[], args: (string | number)[]) => Promise<Reply>;

/** The script fragment that separates a refusal by Redis from an error of a single job. */
export const refusalScript = new URL('./refusal.lua', import.meta.url);

/**
 * Loads a `.lua` file: `loadScript(new URL('../jobs/begin.lua', import.meta.url))`. ioredis sends its hash, and its text only
 * if Redis does not know it yet. A script's header lists all its inputs, and all keys of one call share a hash tag.
 * @param parts shared fragments, prepended to the file
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

/** The script's text as Redis gets it. Its name comes first, to identify it in the slow log. */
export function scriptText(name: string, files: readonly (URL | string)[]): string {
  return [`-- ${name}`, ...files.map((file) => readFileSync(file, 'utf8'))].join('\n');
}

import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Cluster } from 'ioredis';
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
    const isCluster = redis instanceof Cluster;
    if (client[command] === undefined) redis.defineCommand(command, { lua: isCluster ? onCluster(lua) : lua });
    const given = isCluster ? withAbsentKey(keys) : keys;
    return (client[command] as (...args: unknown[]) => Promise<Reply>).call(redis, given.length, ...given, ...args);
  };
}

/**
 * The keys of a call on a Cluster, with one more that never exists. While their slot is moved to another node, keys that exist are
 * on either node, and scripts use more than those of the call: the new node would see a key that is not there yet as revoked, and
 * make a second one that keeps it from coming. Redis refuses calls of several keys then (TRYAGAIN) if one of them is missing, and
 * ioredis repeats them until the slot has moved (https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#multi-key-operations).
 */
function withAbsentKey(keys: string[]): string[] {
  const [first] = keys;
  if (first === undefined) return keys;
  return [...keys, `sluice:{${/\{([^}]+)\}/.exec(first)?.[1] ?? first}}:absent`];
}

/** A script without that key: some handle each key that they get. */
function onCluster(lua: string): string {
  const afterName = lua.indexOf('\n');
  return `${lua.slice(0, afterName)}\nKEYS[#KEYS] = nil${lua.slice(afterName)}`;
}

/** The script's text as Redis gets it. Its name comes first, to identify it in the slow log. */
export function scriptText(name: string, files: readonly (URL | string)[]): string {
  return [`-- ${name}`, ...files.map((file) => readFileSync(file, 'utf8'))].join('\n');
}

/**
 * Parses a script's verdict. An unknown one, from a script of another version, is returned as an Error, so that the rest of the
 * batch can still be read.
 */
export function readVerdict<Verdict extends string>(verdicts: readonly Verdict[], text = ''): Verdict | Error {
  const verdict = verdicts.find((known) => known === text);
  return verdict ?? new Error(`a script gave a verdict that this version does not know: ${text}`);
}

/** Error codes of a Redis that accepts no commands, or no writes, for now; refusal.lua has the same. */
export const refusalCodes = [
  'READONLY',
  'NOREPLICAS',
  'MISCONF',
  'OOM',
  'LOADING',
  'CLUSTERDOWN',
  'TRYAGAIN',
  'MASTERDOWN',
  'BUSY',
] as const;

/** How long a refused command is retried: longer than a failover, and than a worker's lease. */
const patienceMs = 15_000;
const minPauseMs = 20;
const maxPauseMs = 250;

/**
 * Up to Redis 6.2 the position in a script precedes the code. ioredis ends calls that the nodes of a Cluster send to each other for
 * seconds, as while a slot is moved: none has run them.
 */
const refused = new RegExp(`(?:^|[\\s-])(?:${refusalCodes.join('|')}) |Too many Cluster redirections.*(?:ASK|MOVED) `);

/** Whether an error means that Redis refuses for now, and has changed nothing: the same command may succeed a moment later. */
export function isRefusal(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  // A transaction of which Redis has refused a command, and so all.
  const { previousErrors = [] } = error as { readonly previousErrors?: readonly unknown[] };
  return refused.test(error.message) || previousErrors.some(isRefusal);
}

/**
 * Calls Redis, and retries with growing pauses while Redis refuses.
 * @param call must tolerate a repeat
 * @param ms how long to retry
 * @throws what the call throws; a refusal only once the time is over
 */
export async function untilAccepted<T>(call: () => Promise<T>, ms = patienceMs): Promise<T> {
  try {
    return await call();
  } catch (error) {
    return await retryRefused(error, call, ms);
  }
}

/** Same as `untilAccepted`, for a call that has already failed once. */
export async function retryRefused<T>(failure: unknown, call: () => Promise<T>, ms = patienceMs): Promise<T> {
  const giveUpAt = performance.now() + ms;
  let error = failure;
  for (let pauseMs = minPauseMs; isRefusal(error); pauseMs = Math.min(2 * pauseMs, maxPauseMs)) {
    if (performance.now() + pauseMs > giveUpAt) break;
    await delay(pauseMs);
    try {
      return await call();
    } catch (thrown) {
      error = thrown;
    }
  }
  throw error;
}

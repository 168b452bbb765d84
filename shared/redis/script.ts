import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Cluster } from 'ioredis';
import { beforeNextWrite } from './command-batcher.ts';
import { jobKeys } from './keys.ts';
import type { RedisClient } from './redis.ts';

/** A Lua script that runs atomically in Redis; the key list decides the node on a Cluster. */
export type Script<Reply> = (redis: RedisClient, keys: string[], args: (string | number)[]) => Promise<Reply>;

/** The script fragment that separates a refusal by Redis from an error of a single job. */
export const refusalScript = new URL('./refusal.lua', import.meta.url);

/** The script fragment that tells a time noted by a clock that was ahead. */
export const isAheadScript = new URL('./is-ahead.lua', import.meta.url);
/** How far (ms) a noted time may be ahead of now: clocks of a Redis and its replica differ. */
export const maxAheadMs = 60_000;

/** Whether a time in ms, noted earlier by Redis's clock, is ahead of its present one: the same as is-ahead.lua. */
export function isAhead(time: number, now: number): boolean {
  return time > now + maxAheadMs;
}

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
  const [from, to] = [first.indexOf('{'), first.indexOf('}')];
  return [...keys, `sluice:{${from < 0 ? first : first.slice(from + 1, to)}}:absent`];
}

/** A script without that key: some handle each key that they get. */
function onCluster(lua: string): string {
  const afterName = lua.indexOf('\n');
  return `${lua.slice(0, afterName)}\nKEYS[#KEYS] = nil${lua.slice(afterName)}`;
}

/** The script's text as Redis gets it. Its name comes first, to identify it where its text is seen: the slow log has its hash. */
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

/** Maximum calls sent together: keeps scripts short, as a script blocks Redis while it runs. */
const maxTogether = 64;

/** Takes a call's reply, or its error. It must not throw. */
type TakeReply<Reply> = (reply: Reply | Error) => void;

interface Waiting<Call, Reply> {
  readonly call: Call;
  readonly take: TakeReply<Reply>;
}

/**
 * Merges many calls into one: those made until the next write to Redis are sent together, which costs Redis and this process
 * far less than separate calls, and delays an idle connection by nothing.
 * @param send sends one group of calls; returns a reply for each, in order, or the error of that one
 * @param goTogether whether two calls can share a group
 * @param refusals handling of calls that Redis refuses for now: left out, they fail; `retried`, they are repeated for a while,
 * which they must tolerate
 * @param maxCalls maximum number of calls sent together
 */
export function inBatches<Call, Reply>(
  ...batching: Parameters<typeof inBatchesTo<Call, Reply>>
): (redis: RedisClient, call: Call) => Promise<Reply> {
  const ask = inBatchesTo(...batching);
  return (redis, call) =>
    new Promise((resolve, reject) =>
      ask(redis, call, (reply) => {
        if (reply instanceof Error) reject(reply);
        else resolve(reply);
      }),
    );
}

/** The same with a callback for each reply, for calls that come so often that their promises show in a profile. */
export function inBatchesTo<Call, Reply>(
  send: (redis: RedisClient, calls: readonly Call[]) => Promise<readonly (Reply | Error)[]>,
  goTogether: (one: Call, other: Call, redis: RedisClient) => boolean,
  refusals?: 'retried',
  maxCalls = maxTogether,
): (redis: RedisClient, call: Call, take: TakeReply<Reply>) => void {
  const waiting = new WeakMap<RedisClient, Waiting<Call, Reply>[][]>();

  const sendGroup = (redis: RedisClient, group: readonly Waiting<Call, Reply>[]): void => {
    const fail = (thrown: unknown): void => {
      const error = thrown instanceof Error ? thrown : new Error(String(thrown));
      for (const { take } of group) take(error);
    };
    const deliver = (replies: readonly (Reply | Error)[]): void => {
      for (let index = 0; index < group.length; index++) group[index]?.take(replies[index] as Reply | Error);
    };
    const calls = group.map(({ call }) => call);
    send(redis, calls).then(deliver, (error) => {
      if (refusals === undefined || !isRefusal(error)) fail(error);
      else retryRefused(error, () => send(redis, calls)).then(deliver, fail);
    });
  };
  const sendAll = (redis: RedisClient): void => {
    const groups = waiting.get(redis);
    waiting.delete(redis);
    for (const group of groups ?? []) {
      for (let at = 0; at < group.length; at += maxCalls) sendGroup(redis, group.slice(at, at + maxCalls));
    }
  };
  return (redis, call, take) => {
    let groups = waiting.get(redis);
    if (groups === undefined) {
      groups = [];
      waiting.set(redis, groups);
      beforeNextWrite(redis, () => sendAll(redis));
    }
    const group = groups.find(([first]) => first !== undefined && goTogether(first.call, call, redis));
    if (group === undefined) groups.push([{ call, take }]);
    else group.push({ call, take });
  };
}

/** Whether one script can handle both jobs: on a Cluster, only if their keys share a hash tag. */
export function shareNode(
  one: { readonly jobId: string },
  other: { readonly jobId: string },
  redis: RedisClient,
): boolean {
  return !(redis instanceof Cluster) || jobKeys.tag(one.jobId) === jobKeys.tag(other.jobId);
}

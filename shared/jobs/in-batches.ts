import { Cluster } from 'ioredis';
import { beforeNextWrite } from '../gathered-writes.ts';
import { jobKeys } from '../keys.ts';
import type { RedisClient } from '../redis.ts';

/** Keeps a script short, which stops Redis while it runs. */
const mostCalls = 64;

interface Waiting<Call, Reply> {
  readonly call: Call;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Makes one call of many: those that come until the next write to Redis go together, which costs Redis and this process far
 * less than each by itself, and an idle connection no time.
 * @param send makes calls of one group; answers a reply for each, in their order, or why that one failed
 * @param groupOf what calls must have in common to go together
 */
export function inBatches<Call, Reply>(
  send: (redis: RedisClient, calls: readonly Call[]) => Promise<readonly (Reply | Error)[]>,
  groupOf: (call: Call, redis: RedisClient) => string | number,
): (redis: RedisClient, call: Call) => Promise<Reply> {
  const waiting = new WeakMap<RedisClient, Map<string | number, Waiting<Call, Reply>[]>>();

  const sendGroup = (redis: RedisClient, group: readonly Waiting<Call, Reply>[]): void => {
    const fail = (error: unknown): void => {
      for (const { reject } of group) reject(error);
    };
    const calls = group.map(({ call }) => call);
    send(redis, calls).then((replies) => {
      for (const [index, { resolve, reject }] of group.entries()) {
        const reply = replies[index] as Reply | Error;
        if (reply instanceof Error) reject(reply);
        else resolve(reply);
      }
    }, fail);
  };
  const sendAll = (redis: RedisClient): void => {
    const groups = waiting.get(redis);
    waiting.delete(redis);
    for (const group of groups?.values() ?? []) {
      for (let at = 0; at < group.length; at += mostCalls) sendGroup(redis, group.slice(at, at + mostCalls));
    }
  };
  return (redis, call) =>
    new Promise((resolve, reject) => {
      let groups = waiting.get(redis);
      if (groups === undefined) {
        groups = new Map();
        waiting.set(redis, groups);
        beforeNextWrite(redis, () => sendAll(redis));
      }
      const name = groupOf(call, redis);
      const group = groups.get(name);
      if (group === undefined) groups.set(name, [{ call, resolve, reject }]);
      else group.push({ call, resolve, reject });
    });
}

/** What calls about jobs must have in common for one script: on a Cluster, the hash tag of their keys. */
export function node(redis: RedisClient, jobId: string): number {
  return redis instanceof Cluster ? jobKeys.tag(jobId) : 0;
}

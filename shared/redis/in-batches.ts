import { Cluster } from 'ioredis';
import { beforeNextWrite } from './command-batcher.ts';
import { jobKeys } from './keys.ts';
import type { RedisClient } from './redis.ts';
import { isRefusal, retryRefused } from './script.ts';

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

import { inBatchesTo, shareNode } from '../redis/in-batches.ts';
import { jobKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { loadScript, readVerdict, refusalScript } from '../redis/script.ts';
import { leaseMs, leaseScript } from './job-state.ts';

/** `ok`, or why the worker must stop; see append.lua. */
export const ownerships = ['ok', 'fenced', 'ended', 'gone'] as const;
export type Ownership = (typeof ownerships)[number];

const verdicts = [...ownerships, 'gap'] as const;

/** `gap`: the log lacks the frames before these and cannot accept them. */
export type AppendVerdict = (typeof verdicts)[number];

const script = loadScript<string[]>(new URL('./append.lua', import.meta.url), refusalScript, leaseScript);

/** The command scripts publish with: sharded on a Cluster, where a script may publish only on its own node. */
export function publishCommand(isCluster: boolean): 'PUBLISH' | 'SPUBLISH' {
  return isCluster ? 'SPUBLISH' : 'PUBLISH';
}

/** Frames to append: `lines` is newline-separated, see frames.ts. */
export interface AppendCall {
  readonly jobId: string;
  readonly attempt: number;
  readonly firstSeq: number;
  /** Who serves the answer, see `servedText`. */
  readonly served: string;
  readonly lastSeq: number;
  readonly lines: string;
  readonly hasDelta: boolean;
  /** Lifetime of the log if the job is never ended, in ms. */
  readonly lifetimeMs: number;
  readonly isCluster: boolean;
}

/**
 * Appends frames to the answer log and publishes them in one step. Idempotent. The verdict, or the error, goes to a callback:
 * there is an append for nearly every token.
 */
export const appendTo = inBatchesTo(appendAll, shareNode, 'retried');

async function appendAll(redis: RedisClient, calls: readonly AppendCall[]): Promise<(AppendVerdict | Error)[]> {
  const { isCluster, jobId: any } = calls[0] as AppendCall;
  const keys: string[] = [];
  // Readers are subscribed to their channels of every tag; on a Cluster the calls' jobs share one.
  const args: (string | number)[] = [leaseMs, publishCommand(isCluster), jobKeys.inboxPrefix(any)];
  for (const { jobId, attempt, firstSeq, lastSeq, served, lines, lifetimeMs, hasDelta } of calls) {
    keys.push(jobKeys.state(jobId), jobKeys.log(jobId));
    const batch = `${attempt} ${firstSeq} ${served}\n${lines}`;
    args.push(jobId, attempt, firstSeq, lastSeq, batch, lifetimeMs, hasDelta ? '1' : '0');
  }
  const replies = await script(redis, keys, args);
  return replies.map((reply) => (reply.startsWith('error ') ? new Error(reply) : readVerdict(verdicts, reply)));
}

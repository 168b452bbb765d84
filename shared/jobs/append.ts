import { jobKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { inBatchesTo, loadScript, readVerdict, refusalScript, shareNode } from '../redis/script.ts';
import { leaseMs, leaseScript } from './job-state.ts';

/** `ok`, or why the worker must stop; see append.lua. */
export const ownerships = ['ok', 'fenced', 'ended', 'gone'] as const;
export type Ownership = (typeof ownerships)[number];

const verdicts = [...ownerships, 'gap'] as const;

/** `gap`: the log lacks the frames before these and cannot accept them. */
export type AppendVerdict = (typeof verdicts)[number];

/** The reply to a call with a journal: the frames are in the log, and the job has these readers. */
export interface Journaling {
  readonly readers: readonly string[];
}

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
  /** Set if the first of the frames were published before: sequence number of the first other, and bytes of the lines before it. */
  readonly published?: { readonly firstSeq: number; readonly bytes: number } | undefined;
  /** Where in its journal the caller will write what follows, if it will. */
  readonly journal?: string | undefined;
}

/**
 * Appends frames to the answer log and publishes them in one step. Idempotent. The verdict, or the error, goes to a callback:
 * there is an append for nearly every token.
 */
export const appendTo = inBatchesTo(appendAll, shareNode, 'retried');

async function appendAll(
  redis: RedisClient,
  calls: readonly AppendCall[],
): Promise<(AppendVerdict | Journaling | Error)[]> {
  const { isCluster, jobId: any } = calls[0] as AppendCall;
  const keys: string[] = [];
  // Readers are subscribed to their channels of every tag; on a Cluster the calls' jobs share one.
  const args: (string | number)[] = [leaseMs, publishCommand(isCluster), jobKeys.inboxPrefix(any)];
  for (const call of calls) {
    const { jobId, attempt, firstSeq, lastSeq, served, lines, lifetimeMs, hasDelta, published, journal = '' } = call;
    keys.push(jobKeys.state(jobId), jobKeys.log(jobId));
    const head = `${attempt} ${firstSeq} ${served}\n`;
    const left = published && Buffer.byteLength(head) + published.bytes;
    const rest = published === undefined ? '' : `${left} ${attempt} ${published.firstSeq} ${served}`;
    args.push(jobId, attempt, firstSeq, lastSeq, head + lines, lifetimeMs, hasDelta ? '1' : '0', rest, journal);
  }
  return (await script(redis, keys, args)).map(readReply);
}

function readReply(reply: string): AppendVerdict | Journaling | Error {
  if (reply.startsWith('ok ')) return { readers: reply.slice(3).split(' ') };
  return reply.startsWith('error ') ? new Error(reply) : readVerdict(verdicts, reply);
}

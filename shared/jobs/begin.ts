import { inBatches, shareNode } from '../redis/in-batches.ts';
import { jobKeys } from '../redis/keys.ts';
import { readVerdict } from '../redis/read-verdict.ts';
import type { RedisClient } from '../redis/redis.ts';
import { loadScript, refusalScript } from '../redis/script.ts';
import { readTask, type VendorTask } from './vendor-task.ts';

/** How long a worker owns a job without a sign of life. A frozen worker's job is taken over after this time. */
export const leaseMs = 10_000;

/** How often a job may be tried where trying again is allowed: one that has killed two workers would kill the next. */
const attemptsAllowed = 2;

/** Why a job is not run, where that is all that begin-job.lua says. */
const plainVerdicts = ['drop', 'settle', 'overdue', 'interrupted', 'lost', 'unknown', 'exhausted'] as const;

/** What a worker may do with a job; see begin-job.lua. */
export type BeginVerdict =
  | { readonly verdict: 'run'; readonly attempt: number; readonly lastSeq: number }
  | {
      readonly verdict: 'poll';
      readonly attempt: number;
      readonly lastSeq: number;
      readonly task: VendorTask;
      /** How far the task is known to be, in percent. */
      readonly progress: number;
    }
  | { readonly verdict: 'wait'; readonly waitMs: number }
  | { readonly verdict: (typeof plainVerdicts)[number] }
  /** Its state, or its vendor's task, is none. Another asking would not help. */
  | { readonly verdict: 'unreadable'; readonly reason: string };

/** The part of a script that begins jobs. */
export const beginJobScript = new URL('./begin-job.lua', import.meta.url);

const script = loadScript<string[]>(new URL('./begin.lua', import.meta.url), refusalScript, beginJobScript);

/** A job that a worker asks to begin. */
export interface BeginCall {
  readonly jobId: string;
  readonly workerId: string;
  /** Unique per claim of the job from the queue. */
  readonly claim: string;
  /** Whether it may be run again where it may have been run before. */
  readonly repeatable: boolean;
}

/** Asks whether a job taken from the queue may run, and makes the caller its owner if so. */
export const begin = inBatches(
  beginAll,
  (one, other, redis) => one.workerId === other.workerId && shareNode(one, other, redis),
  'retried',
);

async function beginAll(redis: RedisClient, calls: readonly BeginCall[]): Promise<BeginVerdict[]> {
  const { workerId } = calls[0] as BeginCall;
  const replies = await script(
    redis,
    calls.map(({ jobId }) => jobKeys.state(jobId)),
    [...beginTerms(workerId), ...calls.flatMap((call) => [call.repeatable ? '1' : '0', call.claim])],
  );
  return replies.map(readBeginReply);
}

/** The terms on which a worker begins jobs: its id, the lease in ms, how many attempts are allowed. */
export function beginTerms(workerId: string): [workerId: string, leaseMs: number, attemptsAllowed: number] {
  return [workerId, leaseMs, attemptsAllowed];
}

/** What beginJob has answered. One that cannot be read fails by itself, not those that were begun with it. */
export function readBeginReply(text: string): BeginVerdict {
  const [verdict, number = '', lastSeq, progress, task = ''] = text.split('\t');
  if (verdict === 'error') return { verdict: 'unreadable', reason: number };
  const own = { attempt: Number(number), lastSeq: Number(lastSeq) };
  if (verdict === 'run') return { verdict, ...own };
  if (verdict === 'poll') return readPoll(own, task, Number(progress));
  if (verdict === 'wait') return { verdict, waitMs: own.attempt };
  const plain = readVerdict(plainVerdicts, verdict);
  return plain instanceof Error ? { verdict: 'unreadable', reason: plain.message } : { verdict: plain };
}

function readPoll(own: { attempt: number; lastSeq: number }, task: string, progress: number): BeginVerdict {
  try {
    return { verdict: 'poll', ...own, task: readTask(task), progress };
  } catch {
    return { verdict: 'unreadable', reason: "the vendor's task in the job's state is none" };
  }
}

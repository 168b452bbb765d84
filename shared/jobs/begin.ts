import { inBatches, shareNode } from '../redis/in-batches.ts';
import { jobKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { loadScript, readVerdict, refusalScript } from '../redis/script.ts';
import { readTask, type VendorTask } from './vendor-task.ts';

/** How long a worker owns a job without renewing the lease. After this time another worker takes over. */
export const leaseMs = 10_000;

/** Attempts allowed for a repeatable job: one that has killed two workers would kill the next. */
const attemptsAllowed = 2;

/** Reasons not to run a job that carry no further data; see begin-job.lua. */
const plainVerdicts = ['drop', 'settle', 'overdue', 'interrupted', 'lost', 'unknown', 'exhausted'] as const;

/** Verdict on a worker's request to begin a job; see begin-job.lua. */
export type BeginVerdict =
  | { readonly verdict: 'run'; readonly attempt: number; readonly lastSeq: number }
  | {
      readonly verdict: 'poll';
      readonly attempt: number;
      readonly lastSeq: number;
      readonly task: VendorTask;
      /** Last known progress of the task, in percent. */
      readonly progress: number;
    }
  | { readonly verdict: 'wait'; readonly waitMs: number }
  | { readonly verdict: (typeof plainVerdicts)[number] }
  /** Its state, or its vendor's task, cannot be parsed. Asking again would not help. */
  | { readonly verdict: 'unreadable'; readonly reason: string };

/** The script fragment that begins jobs. */
export const beginJobScript = new URL('./begin-job.lua', import.meta.url);

const script = loadScript<string[]>(new URL('./begin.lua', import.meta.url), refusalScript, beginJobScript);

/** A worker's request to begin a job. */
export interface BeginCall {
  readonly jobId: string;
  readonly workerId: string;
  /** Unique per claim of the job from the queue. */
  readonly claim: string;
  /** Whether the job may be rerun after a possible earlier run. */
  readonly repeatable: boolean;
}

/** Asks whether a claimed job may run, and if so makes the caller its owner. */
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

/** Arguments shared by all jobs a worker begins: its id, the lease in ms, the attempts allowed. */
export function beginTerms(workerId: string): [workerId: string, leaseMs: number, attemptsAllowed: number] {
  return [workerId, leaseMs, attemptsAllowed];
}

/** Parses beginJob's reply. An unreadable one fails alone, not the jobs begun in the same batch. */
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

import type { ApiError } from '../errors.ts';
import { jobKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { inBatches, loadScript, readVerdict, refusalScript, shareNode, untilAccepted } from '../redis/script.ts';
import { isOtherVersion } from '../runtime/wire-version.ts';
import { errorLine, type Ownership, type PublishedLines, publishCommand } from './append.ts';
import { leaseMs, leaseScript, type Outcome } from './job-state.ts';
import { journaledScript } from './journal/write-journal.ts';
import { errorDetails } from './settlement/error-details.ts';
import { readTask, type VendorTask } from './vendor-task.ts';

/** Attempts allowed for a repeatable job: one that has killed two workers would kill the next. */
const attemptsAllowed = 2;

/** Reasons not to run a job that carry no further data; see begin-job.lua. */
const plainVerdicts = ['drop', 'settle', 'overdue', 'interrupted', 'lost', 'unknown', 'exhausted'] as const;

/** Verdict on a worker's request to begin a job; see begin-job.lua. */
export type BeginVerdict =
  | {
      readonly verdict: 'run';
      readonly attempt: number;
      readonly lastSeq: number;
      /** Attempts before that have called no vendor; left out: none. */
      readonly withdrawn?: number;
    }
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
  /** Its vendor's task has a version that this build does not read. The attempt is the caller's. */
  | { readonly verdict: 'other_version'; readonly attempt: number }
  /** Its state, or its vendor's task, cannot be parsed. Asking again would not help. */
  | { readonly verdict: 'unreadable'; readonly reason: string };

/** The script fragment that begins jobs. */
export const beginJobScript = new URL('./begin-job.lua', import.meta.url);

const beginScript = loadScript<string[]>(
  new URL('./begin.lua', import.meta.url),
  refusalScript,
  leaseScript,
  beginJobScript,
);

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
  const replies = await beginScript(
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
  if (verdict === 'run') return { verdict, ...own, ...(progress !== '0' && { withdrawn: Number(progress) }) };
  if (verdict === 'poll') return readPoll(own, task, Number(progress));
  if (verdict === 'wait') return { verdict, waitMs: own.attempt };
  const plain = readVerdict(plainVerdicts, verdict);
  return plain instanceof Error ? { verdict: 'unreadable', reason: plain.message } : { verdict: plain };
}

/** The verdict of a claim that may have begun its job; undefined if it has not, or the reply is unreadable: `begin` then tells why. */
export function readClaimedReply(text: string): BeginVerdict | undefined {
  const verdict = text === '' ? undefined : readBeginReply(text);
  return verdict?.verdict === 'unreadable' ? undefined : verdict;
}

function readPoll(own: { attempt: number; lastSeq: number }, task: string, progress: number): BeginVerdict {
  try {
    return { verdict: 'poll', ...own, task: readTask(task), progress };
  } catch (error) {
    if (isOtherVersion(error)) return { verdict: 'other_version', attempt: own.attempt };
    return { verdict: 'unreadable', reason: "the vendor's task in the job's state is none" };
  }
}

const releaseScript = loadScript<Ownership | 'released' | 'kept'>(
  new URL('./release.lua', import.meta.url),
  leaseScript,
);

/** Requeues a job without committed output; see release.lua. */
export function releaseLease(
  redis: RedisClient,
  jobId: string,
  attempt: number,
): Promise<Ownership | 'released' | 'kept'> {
  return untilAccepted(() => releaseScript(redis, [jobKeys.state(jobId)], [attempt]));
}

const withdrawScript = loadScript<Exclude<Ownership, 'ok'> | 'withdrawn'>(
  new URL('./withdraw.lua', import.meta.url),
  leaseScript,
);

/** Withdraws an attempt that waits for its vendor; see withdraw.lua. */
export function withdrawAttempt(
  redis: RedisClient,
  call: { readonly jobId: string; readonly attempt: number; readonly hasCalled: boolean },
): Promise<Exclude<Ownership, 'ok'> | 'withdrawn'> {
  const args = [call.attempt, call.hasCalled ? '0' : '1'];
  return untilAccepted(() => withdrawScript(redis, [jobKeys.state(call.jobId)], args));
}

/** How long an unread answer stays in Redis after its end. */
const undeliveredMs = 60_000;
/**
 * Lifetime of an ended job's state if its worker died before shortening it: enough for a sweeper to come back and settle the
 * job, but no more, or every crash would fill Redis for as long as a job may run.
 */
const endedMs = 600_000;

const finishScript = loadScript<string[]>(
  new URL('./finish.lua', import.meta.url),
  refusalScript,
  leaseScript,
  journaledScript,
);

/** Condition under which a caller other than the worker ends a job; see finish.lua. */
export type EndGuard =
  | 'queued'
  | 'uncalled'
  | 'abandoned'
  | 'overdue'
  | `left ${string}`
  | 'unshared'
  | `unshared ${string}`;

export interface FinishCall {
  readonly jobId: string;
  /** The worker's attempt; absent for a canceller, a deadline or the sweeper. */
  readonly attempt?: number;
  /** Condition under which a caller other than the worker may end the job; see finish.lua. */
  readonly guard?: EndGuard;
  readonly outcome: Outcome;
  /** Vendor's usage as JSON. */
  readonly usage?: string | undefined;
  /** Cost in nano-dollars; undefined if not known (yet). */
  readonly cost?: number | undefined;
  /** What its vendor's prompt cache saved, in nano-dollars. */
  readonly saved?: number | undefined;
  readonly errorCode?: string | undefined;
  /** Why it failed, as JSON text, see `errorDetails`; only with a code. */
  readonly errorDetails?: string | undefined;
  /** Frame lines, the terminal one last. */
  readonly lines: string;
  readonly lineCount: number;
  /** Sequence number of the first line, if earlier frames must already be in the log; left out: the next free one. */
  readonly firstSeq?: number | undefined;
  readonly published?: PublishedLines | undefined;
  /** How long the job's answer stays readable; 0 for plain jobs. */
  readonly retentionMs: number;
  readonly isCluster: boolean;
  /** Who served the answer, see `servedText`; left out if the caller knows of no vendor. */
  readonly served?: string;
}

const verdicts = ['finished', 'already', 'fenced', 'refused', 'gone', 'gap'] as const;

/** Result of finish.lua. */
export interface FinishReply {
  /** `finished`: this call ended the job. `already`: another call had ended it. Others: this call did not end it. */
  readonly verdict: (typeof verdicts)[number];
  /** The recorded outcome, if there is one. */
  readonly outcome: Outcome | undefined;
  /** Whether a worker had begun the job. */
  readonly began: boolean;
  /** Whether this call ended a job that a worker is still running, judging by its lease. */
  readonly isRunning: boolean;
}

/** Ends a job; nothing else does. The first caller wins; see finish.lua. Settle the job afterwards. */
export const finish = inBatches(finishAll, shareNode, 'retried');

async function finishAll(redis: RedisClient, calls: readonly FinishCall[]): Promise<(FinishReply | Error)[]> {
  const { isCluster } = calls[0] as FinishCall;
  const keys = calls.flatMap(({ jobId }) => [jobKeys.state(jobId), jobKeys.log(jobId)]);
  const replies = await finishScript(redis, keys, [publishCommand(isCluster), ...calls.flatMap(argumentsOf)]);
  return replies.map(readReply);
}

function argumentsOf(call: FinishCall): (string | number)[] {
  return [
    call.jobId,
    call.attempt ?? '',
    call.guard ?? '',
    call.outcome,
    call.usage ?? '',
    call.errorDetails === undefined ? (call.errorCode ?? '') : `${call.errorCode}\n${call.errorDetails}`,
    call.lines,
    call.lineCount,
    jobKeys.inboxPrefix(call.jobId),
    Math.max(call.retentionMs, undeliveredMs),
    Math.max(call.retentionMs, endedMs),
    call.served ?? '',
    call.cost ?? '',
    call.firstSeq ?? '',
    call.saved || '',
    call.published === undefined
      ? ''
      : `${call.published.bytes} ${call.attempt} ${call.published.firstSeq} ${call.served ?? ''}`,
  ];
}

function readReply(text: string): FinishReply | Error {
  const [name, outcome = '', attempt, lease] = text.split('\t');
  if (name === 'error') return new Error(outcome);
  const verdict = readVerdict(verdicts, name);
  if (verdict instanceof Error) return verdict;
  return {
    verdict,
    outcome: (outcome || undefined) as Outcome | undefined,
    began: attempt !== '',
    isRunning: lease === '1',
  };
}

/** Ends a job with an error frame, on behalf of `attempt` if given. */
export function finishWithError(
  redis: RedisClient,
  call: Pick<FinishCall, 'jobId' | 'attempt' | 'guard' | 'retentionMs' | 'isCluster'>,
  error: ApiError,
): Promise<FinishReply> {
  return finish(redis, {
    ...call,
    outcome: error.code === 'cancelled' ? 'cancelled' : 'failed',
    errorCode: error.code,
    errorDetails: errorDetails(error),
    lines: errorLine(error),
    lineCount: 1,
  });
}

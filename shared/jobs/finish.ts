import type { ApiError } from '../errors.ts';
import { inBatches, shareNode } from '../redis/in-batches.ts';
import { jobKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { loadScript, readVerdict, refusalScript } from '../redis/script.ts';
import { publishCommand } from './append.ts';
import { frameLine } from './frames.ts';
import type { Outcome } from './job-state.ts';
import { errorDetails } from './settlement/error-details.ts';

/** How long an unread answer stays in Redis after its end. */
const undeliveredMs = 60_000;
/**
 * Lifetime of an ended job's state if its worker died before shortening it: enough for a sweeper to come back and settle the
 * job, but no more, or every crash would fill Redis for as long as a job may run.
 */
const endedMs = 600_000;

const script = loadScript<string[]>(new URL('./finish.lua', import.meta.url), refusalScript);

/** Condition under which a caller other than the worker ends a job; see finish.lua. */
export type EndGuard = 'queued' | 'abandoned' | 'overdue';

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
  readonly errorCode?: string | undefined;
  /** Why it failed, as JSON text, see `errorDetails`; only with a code. */
  readonly errorDetails?: string | undefined;
  /** Frame lines, the terminal one last. */
  readonly lines: string;
  readonly lineCount: number;
  /** Sequence number of the first line, if earlier frames must already be in the log; left out: the next free one. */
  readonly firstSeq?: number | undefined;
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
  const replies = await script(redis, keys, [publishCommand(isCluster), ...calls.flatMap(argumentsOf)]);
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
    lines: frameLine('error', JSON.stringify(error.toData())),
    lineCount: 1,
  });
}

import { withEmbeddingUsage } from '../../shared/capabilities/embedding.ts';
import { ApiError } from '../../shared/errors.ts';
import { FairTurns } from '../../shared/fairness/fair-turns.ts';
import { framesInLog, readLog } from '../../shared/jobs/answer-log.ts';
import type { JobState } from '../../shared/jobs/job-state.ts';
import { hasImpossibleAmount } from '../../shared/money/token-counts.ts';
import type { QueuedJob } from '../../shared/queue/queue.ts';
import { graceMs } from '../../shared/runtime/shutdown.ts';
import { Slots } from '../../shared/runtime/slots.ts';
import { sumUsage } from '../vendors/support/sum-usage.ts';
import type { JobAnswer, OpenAnswer, VendorUsage } from '../vendors/vendor.ts';
import type { WorkerContext } from '../worker-context.ts';
import { boundExchange } from './bound-usage.ts';
import type { Exchange, TokenCounts } from './exchange.ts';
import { TokenCounter } from './token-counter.ts';

/** Counts at a time, and bounds: each holds a request and the rest of the answer. One is read while another is counted. */
const atATime = 2;
/** What waits to be counted, with its requests; a bound is charged for more. */
const waitingCounts = { tasks: 10_000, bytes: 64 * 1024 * 1024 };
/** Maximum characters read of an answer's frames; see `Exchange`. */
const maxRead = 1024 * 1024;
/** A count that takes longer is replaced by an upper bound, which a worker that shuts down has yet to write. */
const maxMs = graceMs - 2000;

/** Separate from the counter of the token-counting endpoint, whose requests may take seconds each. */
const counter = new TokenCounter();
/** Otherwise an account whose answers are cut by the hundred would have those of all others charged by an upper bound. */
const counting = new FairTurns(atATime, waitingCounts, { tooMany: tooMuch, tooLate: tooMuch });
/** Bounds need no counter; they have slots of their own because they occur when there is too much to be counted. */
const bounding = new Slots(atATime);

type Usage = NonNullable<VendorUsage>;
type EstimatedContext = Pick<WorkerContext, 'redis' | 'blobs' | 'log'>;

/** Whether a job's vendor counts tokens, so that the gateway counts them if the vendor does not. */
export function hasTokens({ capability, endpoint }: Pick<QueuedJob, 'capability' | 'endpoint'>): boolean {
  return capability === 'embedding' || (capability === 'chat' && endpoint !== 'messages.count_tokens');
}

/** Whether a job's answer is media that begin before their end: if its caller ends it, what came before is charged by an estimate. */
export function isChargedWhenCut({ capability }: Pick<QueuedJob, 'capability'>): boolean {
  return capability === 'speech' || capability === 'transcription' || capability === 'image';
}

/**
 * Adds an estimated usage to an answer whose vendor reported none, also in its body: callers who request usage get numbers.
 * Output before the end is read from the log, which must be complete.
 */
export async function withEstimate(context: EstimatedContext, job: QueuedJob, answer: JobAnswer): Promise<JobAnswer> {
  const { body } = answer;
  // Only embeddings are bytes.
  const isText = typeof body === 'string' && job.capability !== 'embedding';
  const counts = await count(context, job, isText ? body : undefined);
  if (counts === undefined) return answer;
  const usage = toUsage(job, counts);
  const { tier } = answer;
  if (!isText) return { body: withEmbeddingUsage(body, usage), usage };
  const end = JSON.parse(body) as Record<string, unknown> & { response?: object };
  if (end.response === undefined) {
    return { body: JSON.stringify({ ...end, usage }), usage, ...usageOfCalls(job, counts), tier };
  }
  // The vendor's own Responses API has other names for the counts.
  const own = toResponseUsage(counts);
  return { body: JSON.stringify({ ...end, response: { ...end.response, usage: own } }), usage: own, tier };
}

/**
 * The usage of an answer that did not finish: the request, and the part of the answer in the log; undefined if there is none, and
 * one of null if it could not be counted. Without output only a job whose caller has left its vendor at work has usage: the prompt, which
 * the vendor read, and may charge for. A failure before any output is the vendor's, or the gateway's.
 * @param state of the job once it has ended
 * @param isLeftAtWork whether its caller has left while a vendor was at work for it
 * @param openAnswer of that vendor, whose counts replace the estimate as far as they go
 */
export async function estimateInterrupted(
  context: EstimatedContext,
  job: QueuedJob,
  { outcome, hasDelta }: Pick<JobState, 'outcome' | 'hasDelta'>,
  isLeftAtWork: boolean,
  openAnswer?: OpenAnswer,
): Promise<Pick<JobAnswer, 'usage' | 'calls'> | undefined> {
  const hasUsage = outcome !== 'completed' && (hasDelta || isLeftAtWork);
  if (!hasUsage || !hasTokens(job)) return undefined;
  const counts = await count(context, job, undefined, openAnswer?.inputsSent);
  if (counts === undefined) return { usage: null };
  const usage = withReported(toUsage(job, counts), openAnswer?.usageSoFar() ?? {});
  const estimated = usageOfCalls(job, counts);
  const { counted = [] } = openAnswer ?? {};
  if (counted.length === 0) return { usage, ...estimated };
  const calls = [...(estimated.calls ?? [usage]), ...counted];
  return { usage: sumUsage(calls), calls };
}

/** An estimate with what its vendor had counted: all of the input, and of the output what that is at least. */
function withReported(estimate: Usage, reported: Usage): Usage {
  const { prompt_tokens: prompt, completion_tokens: said, prompt_tokens_details: details } = reported;
  if (typeof prompt !== 'number' || prompt <= 0 || hasImpossibleAmount(reported)) return estimate;
  const isMore = Number(said ?? 0) > Number(estimate.completion_tokens);
  const completion = Number(isMore ? said : estimate.completion_tokens);
  return {
    ...estimate,
    ...{ prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion },
    ...(details !== undefined && { prompt_tokens_details: details }),
    ...(isMore && { completion_tokens_details: reported.completion_tokens_details ?? {} }),
  };
}

/** What the first frame of an answer says of its service tier, if it can be read: for an answer that did not finish. */
export async function tierInLog({ redis }: Pick<EstimatedContext, 'redis'>, jobId: string): Promise<unknown> {
  try {
    const { batches } = await readLog(redis, jobId, 0, 1);
    const first = batches[0]?.frames[0];
    if (first?.type !== 'delta' || first.isBlob) return undefined;
    return (JSON.parse(first.text) as { service_tier?: unknown }).service_tier;
  } catch {
    return undefined;
  }
}

/** Counts, or bounds what cannot be counted in time; undefined if neither is possible: the usage is unknown then. */
async function count(
  context: EstimatedContext,
  job: QueuedJob,
  body?: string,
  inputsSent?: Exchange['inputsSent'],
): Promise<TokenCounts | undefined> {
  const signal = AbortSignal.timeout(maxMs);
  try {
    const task = { account: job.account, bytes: (job.request?.length ?? 0) + (body?.length ?? 0) };
    return await counting.run(task, signal, async () => {
      return await counter.countExchange({ ...(await readExchange(context, job, body)), inputsSent }, signal);
    });
  } catch (error) {
    // Never the error's message: it may quote the prompt.
    context.log.warn(
      { job: job.id, code: ApiError.from(error).code },
      'counting usage failed; an upper bound is charged',
    );
  }
  try {
    return await bounding.run(async () => {
      return boundExchange({ ...(await readExchange(context, job, body)), inputsSent });
    });
  } catch (error) {
    context.log.warn({ job: job.id, code: ApiError.from(error).code }, 'estimating usage failed');
    return undefined;
  }
}

function tooMuch(): ApiError {
  return new ApiError('timeout', 'There was too much to be counted.');
}

/** The text of a job's request, wherever it is. */
export async function requestOf({ blobs }: Pick<WorkerContext, 'blobs'>, job: QueuedJob): Promise<string> {
  return job.request ?? (await blobs.ofRecords(job.account).text(job.requestBlob ?? ''));
}

async function readExchange({ redis, blobs }: EstimatedContext, job: QueuedJob, body?: string): Promise<Exchange> {
  const { endpoint, capability } = job;
  const request = await requestOf({ blobs }, job);
  const frames: string[] = [];
  let [length, largeLength] = [0, 0];
  for await (const frame of capability === 'chat' ? framesInLog(redis, job.id) : []) {
    if (frame.type !== 'delta') continue;
    if (frame.isBlob) {
      largeLength += (JSON.parse(frame.text) as { bytes: number }).bytes;
      continue;
    }
    if (length < maxRead) frames.push(frame.text);
    length += frame.text.length;
  }
  if (body !== undefined) frames.push(body);
  return { endpoint, request, frames, length: length + (body?.length ?? 0), largeLength };
}

/** OpenAI's `usage`, marked as an estimate. */
function toUsage({ capability }: QueuedJob, { prompt, completion, reasoning }: TokenCounts): Usage {
  if (capability === 'embedding') return { prompt_tokens: prompt, total_tokens: prompt, estimated: true };
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    ...(reasoning > 0 && { completion_tokens_details: { reasoning_tokens: reasoning } }),
    estimated: true,
  };
}

/** The usage of each chat that stands in for a prompt, where a request has several. */
function usageOfCalls(job: QueuedJob, { byPrompt }: TokenCounts): Pick<JobAnswer, 'calls'> {
  return byPrompt === undefined ? {} : { calls: byPrompt.map((counts) => toUsage(job, { ...counts, reasoning: 0 })) };
}

/** OpenAI's `ResponseUsage`, marked as an estimate. */
function toResponseUsage({ prompt, completion, reasoning }: TokenCounts): VendorUsage {
  return {
    input_tokens: prompt,
    input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
    output_tokens: completion,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: prompt + completion,
    estimated: true,
  };
}

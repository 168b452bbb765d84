import { ApiError } from '../../../shared/errors.ts';
import { waitFor } from '../../http/aborted.ts';
import { LostAnswerError, UnreachableError } from '../../http/connection-errors.ts';
import type { HttpClient, HttpPost } from '../../http/http-client.ts';
import type { VendorCall } from '../vendor.ts';
import { type JsonObject, parseObject } from './json-object.ts';

/** First pause before a poll, and the growth of the pauses between polls. */
const firstPauseMs = 300;
const pauseGrowth = 1.4;
const maxPauseMs = 5000;
/** Limit on a vendor's Retry-After. */
const maxAskedPauseMs = 60_000;
/** Consecutive polls that may fail: the started task is being charged. */
const maxFailures = 5;
/** Maximum wait for a task whose job has a later deadline. */
const maxTaskMs = 900_000;

/** How long a vendor may take to discard a task. */
const discardMs = 10_000;

/** Failures of a poll that another poll cannot fix. */
const finalCodes = new Set(['invalid_request_error', 'not_found', 'model_not_found', 'request_too_large']);

/** The error for work that a vendor may have started, and that must not be started twice. */
export function unknownOutcome(message: string, cause?: unknown): ApiError {
  return new ApiError('outcome_unknown', message, cause === undefined ? {} : { cause });
}

/**
 * Sends the POST that starts a task, once.
 * @throws ApiError `outcome_unknown` if the task may have started and its answer is lost.
 */
export async function beginTask(http: HttpClient, post: HttpPost): Promise<JsonObject> {
  let text: string | null;
  try {
    text = await http.post(post);
  } catch (error) {
    if (!(error instanceof LostAnswerError)) throw error;
    throw unknownOutcome("The model's vendor was lost while it began, and it must not be asked twice.", error.cause);
  }
  try {
    return parseObject(text);
  } catch (error) {
    throw unknownOutcome("The model's vendor began, but its answer cannot be read.", error);
  }
}

/** Codes that only concern reaching the vendor, and say nothing about the started work. */
const connectionCodes = new Set(['rate_limit_exceeded', 'service_unavailable', 'not_found', 'model_not_found']);

/**
 * Runs the steps after a creation: polls, fetching a result and its files. Their failures must not look like a failure of the
 * creation, which may be repeated: the work would be paid for twice.
 * @throws ApiError without the vendor's status, and `outcome_unknown` for one that does not concern the work itself.
 */
export async function afterBegin<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (thrown) {
    throw failureAfterBegin(thrown);
  }
}

/** The error that a failure of such a step is thrown as. */
export function failureAfterBegin(thrown: unknown): ApiError {
  const error = ApiError.from(thrown);
  const isLost = error instanceof LostAnswerError || error instanceof UnreachableError;
  const isVendors = error.vendorStatus !== undefined || error.code === 'not_found';
  if (isLost || (isVendors && connectionCodes.has(error.code))) {
    return unknownOutcome("The model's vendor was lost before the result of what it had begun came.", error);
  }
  if (!isVendors) return error;
  const { code, message, param, vendorCode, cause } = error;
  return new ApiError(code, message, { param, vendorCode, cause, isQuoted: error.isQuoted });
}

/** The name of a started task. It becomes part of a path. @throws ApiError `outcome_unknown` for an invalid one */
export function readTaskName(name: unknown): string {
  if (typeof name === 'string' && /^[\w-]{1,200}$/.test(name)) return name;
  throw unknownOutcome("The model's vendor began, but did not say what its task is called.");
}

/** How to poll a task. */
export interface TaskPolls<Result> {
  /** One poll. */
  ask(): Promise<string | null>;
  /** The result of the task; undefined while it runs. @throws ApiError for a task that failed. */
  read(answer: JsonObject): Result | undefined;
  /** Tells the vendor that the task is no longer wanted; left out: it cannot be told. */
  discard?(limits: DiscardLimits): Promise<unknown>;
}

/** Limits of a call that goes on after its job has ended. */
export type DiscardLimits = Pick<VendorCall, 'signal' | 'silenceMs'>;

/**
 * Polls a task until it has finished, with growing pauses. A failed poll is repeated, the task's creation never.
 * @throws ApiError the signal's reason, what `read` throws, and `outcome_unknown` if the task's state can no longer be learned.
 */
export async function awaitTask<Result>(call: Pick<VendorCall, 'signal'>, polls: TaskPolls<Result>): Promise<Result> {
  try {
    return await pollTask(call, polls);
  } catch (error) {
    // Not awaited: the job has ended. One try, because what remains to be done for the task would buy nothing.
    if (call.signal.aborted) polls.discard?.(discardLimits()).catch(() => undefined);
    throw error;
  }
}

function discardLimits(): DiscardLimits {
  return { signal: AbortSignal.timeout(discardMs), silenceMs: discardMs };
}

async function pollTask<Result>(
  { signal }: Pick<VendorCall, 'signal'>,
  { ask, read }: TaskPolls<Result>,
): Promise<Result> {
  const endAt = Date.now() + maxTaskMs;
  let pauseMs = firstPauseMs;
  for (let failures = 0; Date.now() < endAt; ) {
    await waitFor(pauseMs, signal);
    pauseMs = Math.min(pauseMs * pauseGrowth, maxPauseMs);
    let answer: JsonObject;
    try {
      answer = parseObject(await ask());
    } catch (thrown) {
      failures += 1;
      const error = ApiError.from(thrown);
      if (signal.aborted) throw error;
      if (finalCodes.has(error.code) || failures > maxFailures) {
        throw unknownOutcome(
          "The model's vendor can no longer say what became of the task that it had started.",
          error,
        );
      }
      pauseMs = Math.max(pauseMs, Math.min(error.retryAfterMs ?? 0, maxAskedPauseMs));
      continue;
    }
    failures = 0;
    const result = read(answer);
    if (result !== undefined) return result;
  }
  throw unknownOutcome(`The model's vendor has not come to an end within ${maxTaskMs / 1000} seconds.`);
}

/** The error for a picture or a prompt that the vendor's rules do not allow. */
export function contentRefused(message?: string): ApiError {
  return new ApiError(
    'invalid_request_error',
    message ?? "The request was refused by the model vendor's content rules.",
    {
      vendorCode: 'content_policy_violation',
    },
  );
}

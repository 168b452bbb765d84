import { setTimeout as delay } from 'node:timers/promises';
import { ApiError } from '../../shared/errors.ts';

/** The error of work that an aborted signal has ended: the signal's reason, if that is one for the caller. */
export function abortError({ reason }: Pick<AbortSignal, 'reason'>): ApiError {
  return reason instanceof ApiError ? reason : new ApiError('cancelled', 'The request was cancelled.');
}

/** Waits so many ms. @throws ApiError as soon as the signal is aborted */
export async function waitFor(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await delay(ms, undefined, { signal });
  } catch {
    throw abortError(signal);
  }
}

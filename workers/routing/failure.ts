import { ApiError } from '../../shared/errors.ts';
import { LostAnswerError, NoConnectionError, UnreachableError } from '../http/connection-errors.ts';

/** What a failed call means for the next one. */
export interface Failure {
  readonly error: ApiError;
  /** Label in metrics. */
  readonly reason: 'connection' | 'lost' | 'limit' | 'key' | 'missing' | 'status';
  /** Whether the same route may be called again; if not, only another route or another key. */
  readonly sameRoute: boolean;
}

/** The vendor does not accept this key: revoked, unpaid, without the right, its quota exhausted. */
const keyStatuses = new Set([401, 402, 403]);
/** Statuses that mean the vendor has not started. After a 500 it may have, and may charge for it. Groq's flex tier is full at 498. */
const undone = new Set([429, 498, 503, 529]);

/**
 * Whether a failed call may be repeated: connection errors, 408, 429 and 5xx may, and so may failures that another key or vendor
 * may avoid. Undefined for every other failure, such as one of the request itself, which is passed to the caller.
 * @param repeatable whether the work may be done twice; if not, a call whose answer was lost is never repeated
 */
export function readFailure(error: unknown, repeatable: boolean): Failure | undefined {
  if (!(error instanceof ApiError)) return undefined;
  if (error instanceof UnreachableError) return { error, reason: 'connection', sameRoute: true };
  if (error instanceof LostAnswerError) return repeatable ? { error, reason: 'lost', sameRoute: true } : undefined;
  const status = error.vendorStatus;
  if (status === undefined) return undefined;
  // Its vendor has done nothing of it; another may allow more.
  if (error.code === 'request_too_large') return { error, reason: 'status', sameRoute: false };
  if (keyStatuses.has(status)) return { error, reason: 'key', sameRoute: false };
  if (status === 404) return { error, reason: 'missing', sameRoute: false };
  if (status === 429) return { error, reason: 'limit', sameRoute: true };
  if (status < 500 && status !== 408 && !undone.has(status)) {
    // A redirect, a conflict: what this vendor does not do, another may.
    return repeatable && !isCallersFault(error) ? { error, reason: 'status', sameRoute: false } : undefined;
  }
  return repeatable || undone.has(status) ? { error, reason: 'status', sameRoute: true } : undefined;
}

/**
 * Whether a vendor has refused the operator's key, altogether or for a model, or its account has no credit; not for want of credit for
 * this request alone, whose `param` is too large for it.
 */
export function isRefusedKey({ vendorStatus: status, param }: Pick<ApiError, 'vendorStatus' | 'param'>): boolean {
  return status !== undefined && keyStatuses.has(status) && param === null;
}

/** Whether the caller's request caused a failure: it is no sign of the vendor's health. */
export function isCallersFault({ status }: Pick<ApiError, 'status'>): boolean {
  return status === 400 || status === 413;
}

/** Whether a failure counts against the route's health. A limit or a refused key does not, nor does a shortage of this machine's own. */
export function isRouteFailure(error: unknown): boolean {
  if (!(error instanceof ApiError) || error instanceof NoConnectionError) return false;
  if (error instanceof UnreachableError || error instanceof LostAnswerError) return true;
  const { vendorStatus: status } = error;
  return status !== undefined && (status === 408 || status >= 500);
}

/** Whether a failure is an answer of the vendor: not if the call was cancelled, or refused before it was made. */
export function isAnswer(error: unknown): boolean {
  return error instanceof ApiError && error.vendorStatus !== undefined;
}

/** Whether a call was cancelled, which is no sign of its route's health. */
export function isCancelled(error: unknown): boolean {
  return error instanceof ApiError && error.code === 'cancelled';
}

/** A call's label in metrics. Those that end by their callers' doing are no sign of the vendor's health. */
export type CallOutcome = 'answered' | 'failed' | 'rejected' | 'cancelled';

/**
 * The outcome of a call that was not answered.
 * @param signal its job's; one whose reason is `overdue` has waited for its vendor until the deadline
 */
export function failedOutcome(error: unknown, signal: AbortSignal): Exclude<CallOutcome, 'answered'> {
  if (signal.aborted) return signal.reason === 'overdue' ? 'failed' : 'cancelled';
  if (isCancelled(error)) return 'cancelled';
  return error instanceof ApiError && isCallersFault(error) ? 'rejected' : 'failed';
}

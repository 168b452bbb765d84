import { ApiError } from '../../shared/errors.ts';
import { LostAnswerError, UnreachableError } from '../http/http-client.ts';

/** What a failed call means for the next one. */
export interface Failure {
  readonly error: ApiError;
  /** One word for metrics. */
  readonly reason: 'connection' | 'lost' | 'limit' | 'key' | 'missing' | 'status';
  /** Whether the same route may be asked again; if not, only another one, or another key. */
  readonly inPlace: boolean;
}

/** The vendor does not take this key: revoked, unpaid, without the right, its quota used up. */
const keyStatuses = new Set([401, 402, 403]);
/** Statuses by which a vendor says that it has not begun. After a 500 it may have, and may charge for it. */
const undone = new Set([429, 503, 529]);

/**
 * Whether a failed call may be repeated: connection errors, 408, 429 and 5xx may, and what another key or another vendor
 * may do better. Undefined for every other failure: it is the caller's answer.
 * @param repeatable whether the work may be done twice; if not, a call whose answer was lost is never repeated
 */
export function readFailure(error: unknown, repeatable: boolean): Failure | undefined {
  if (!(error instanceof ApiError)) return undefined;
  if (error instanceof UnreachableError) return { error, reason: 'connection', inPlace: true };
  if (error instanceof LostAnswerError) return repeatable ? { error, reason: 'lost', inPlace: true } : undefined;
  const status = error.vendorStatus;
  if (status === undefined) return undefined;
  // A quota that is used up comes as 429, too, but waiting does not bring it back.
  if (keyStatuses.has(status) || (status === 429 && error.code !== 'rate_limit_exceeded')) {
    return { error, reason: 'key', inPlace: false };
  }
  if (status === 404) return { error, reason: 'missing', inPlace: false };
  if (status === 429) return { error, reason: 'limit', inPlace: true };
  if (status !== 408 && status < 500) return undefined;
  return repeatable || undone.has(status) ? { error, reason: 'status', inPlace: true } : undefined;
}

/** Whether a vendor has refused the key of the operator, altogether or for a model. */
export function isRefusedKey({ vendorStatus: status }: Pick<ApiError, 'vendorStatus'>): boolean {
  return status === 401 || status === 403;
}

/** Whether a failure is what the caller has asked for: it says nothing of the vendor. */
export function isCallersFault({ status }: Pick<ApiError, 'status'>): boolean {
  return status === 400;
}

/** Whether a failure is a route's own: it counts against its health. A limit, or a key, says nothing of that. */
export function isRouteFailure(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  if (error instanceof UnreachableError || error instanceof LostAnswerError) return true;
  const { vendorStatus: status } = error;
  return status !== undefined && (status === 408 || status >= 500);
}

/** Whether a call ended because nobody wants its answer any more, which says nothing of its route. */
export function isCancelled(error: unknown): boolean {
  return error instanceof ApiError && error.code === 'cancelled';
}

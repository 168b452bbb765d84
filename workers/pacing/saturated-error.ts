import { ApiError } from '../../shared/errors.ts';
import type { FullRoute } from './pacer.ts';

/** No route of a job has capacity: it may wait for the one that has capacity the soonest. To its caller it is a limit. */
export class SaturatedError extends ApiError {
  /** Name of that route. */
  readonly route: string;
  readonly full: FullRoute;

  /** @param refusal of the vendor, if it was called */
  constructor(route: string, full: FullRoute, refusal?: ApiError) {
    super('rate_limit_exceeded', refusal?.message ?? "The model's vendors have no capacity in time: try again later.", {
      retryAfterMs: full.waitMs,
      reason: 'vendor',
      ...(refusal?.vendorStatus !== undefined && { vendorStatus: refusal.vendorStatus }),
      cause: refusal?.cause,
    });
    this.route = route;
    this.full = full;
  }

  /** The same for a caller who can be told when it would start. */
  startingIn(ms: number): ApiError {
    return new ApiError(this.code, this.message, { retryAfterMs: ms, reason: 'vendor' });
  }
}

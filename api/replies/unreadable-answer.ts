import { ApiError } from '../../shared/errors.ts';

/** Error for an answer whose log has expired. */
export function expired(): ApiError {
  return new ApiError('resume_expired', 'The answer of this job has expired and can no longer be read.');
}

/** Error for the request that made a job which Redis has lost: a retry makes a new job. */
export function lostJob(): ApiError {
  return new ApiError('service_unavailable', 'The gateway lost this request. Retry it.', {
    reason: 'lost',
    retryAfterMs: 1000,
  });
}

import { ApiError } from '../errors.ts';

// Errors that jobs end with whichever process ends them: their worker, another one, an api or a sweeper.

/** The error of a job that has not ended by its deadline, or its caller's own. */
export function overdue(): ApiError {
  return new ApiError('timeout', 'The request was not answered within its deadline.');
}

/** The error of a job that no vendor was called for by `startBy`. */
export function startedTooLate(): ApiError {
  return new ApiError('timeout', 'The request did not start within the time that X-Sluice-Start-By allows.');
}

/** The error of a job that nobody waits for. */
export function callerLeft(): ApiError {
  return new ApiError('cancelled', 'The caller left.');
}

/** The error of a job whose worker was lost in the middle of its answer. */
export function interrupted(): ApiError {
  return new ApiError('stream_interrupted', 'The answer broke off: the process that produced it was lost.');
}

/** The error of a job that was lost before a worker began it. */
export function lostBeforeRun(): ApiError {
  return new ApiError('service_unavailable', 'The request was lost before it ran. Retry it.', { reason: 'lost' });
}

import { ApiError } from '../../../shared/errors.ts';

/** Maps a failure after committed output: it must not look like one after which the call can be repeated. */
export function interrupted(thrown: unknown): ApiError {
  const error = ApiError.from(thrown);
  if (error.code !== 'server_error') return error;
  return new ApiError('stream_interrupted', error.message, { cause: error.cause, isQuoted: error.isQuoted });
}

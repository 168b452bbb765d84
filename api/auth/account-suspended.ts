import type { Config } from '../../shared/config/config.ts';
import { ApiError } from '../../shared/errors.ts';

/** The 403 for any request of a suspended account. */
export function accountSuspended({ contact }: Pick<Config, 'contact'>): ApiError {
  return new ApiError('permission_denied', `This account is suspended. ${contact}`);
}

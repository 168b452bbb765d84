import type { Config } from '../../../shared/config/config.ts';
import { ApiError } from '../../../shared/errors.ts';

/** The 403 for whatever a suspended account asks for. */
export function accountSuspended({ contact }: Pick<Config, 'contact'>): ApiError {
  return new ApiError('permission_denied', `This account is suspended. ${contact}`);
}

import { ApiError, type ErrorCode, type RefusalReason } from '../../../shared/errors.ts';

const codes: Readonly<Record<number, ErrorCode>> = {
  401: 'invalid_api_key',
  403: 'permission_denied',
  404: 'not_found',
  405: 'method_not_allowed',
  429: 'rate_limit_exceeded',
};

/** The fields at fault, by better-auth's codes. */
const params: Readonly<Record<string, string>> = {
  INVALID_EMAIL: 'email',
  INVALID_TOKEN: 'token',
};

/**
 * Converts an error of better-auth to the API's shape, with its lower-case code (`invalid_email_or_password`) and message.
 * @param sent the fields it was sent, to name the one at fault
 * @param reason what a failure of its own is due to
 */
export function authError(
  status: number,
  body: unknown,
  sent: Readonly<Record<string, unknown>>,
  reason: RefusalReason | undefined,
): ApiError {
  const { code, message } = (body ?? {}) as { code?: unknown; message?: unknown };
  // The cause has been logged already.
  if (status >= 500)
    return new ApiError('service_unavailable', 'The service is temporarily unavailable. Try again later.', { reason });
  const sentence = `${message ?? 'The request is not valid'}`.replace(/\.?$/, '.');
  return new ApiError(codes[status] ?? 'invalid_request_error', sentence, {
    param: typeof code === 'string' ? (params[code] ?? passwordParam(code, sent)) : null,
    ...(typeof code === 'string' ? { vendorCode: code.toLowerCase() } : {}),
  });
}

function passwordParam(code: string, sent: Readonly<Record<string, unknown>>): string | null {
  if (code === 'INVALID_PASSWORD') return 'password' in sent ? 'password' : 'currentPassword';
  if (!code.startsWith('PASSWORD_TOO_')) return null;
  return 'newPassword' in sent ? 'newPassword' : 'password';
}

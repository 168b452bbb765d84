import { type ApiError, errorTable } from '../../shared/errors.ts';
import type { Context } from '../state.ts';

/** An error in the shape of Anthropic's API (https://docs.claude.com/en/api/errors). */
export interface AnthropicError {
  readonly type: 'error';
  readonly error: {
    readonly type: string;
    readonly message: string;
    /** Machine-readable details, if any. */
    readonly details?: Readonly<Record<string, unknown>>;
  };
}

/**
 * Anthropic's names for our statuses. The statuses themselves stay ours: Anthropic's 529 is our 503, which its clients retry
 * just the same. Every other 4xx is an `invalid_request_error`, every other 5xx an `api_error`.
 */
const types: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  504: 'timeout_error',
};

/** Converts an error to Anthropic's shape. */
export function toAnthropicError(error: ApiError): AnthropicError {
  const { status } = errorTable[error.code];
  const type = types[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error');
  const message = messageOf(error);
  return { type: 'error', error: { type, message, ...(error.details && { details: error.details }) } };
}

/** Anthropic's own messages for a prompt beyond the context window. */
const tooLong = /prompt is too long|input length and `max_tokens` exceed context limit/i;

/**
 * The message, which also has what Anthropic's shape has no field for: the parameter at fault, and that the prompt is too long.
 * Anthropic's clients read the latter from its words, whichever vendor says it: Claude Code shortens the conversation then.
 */
function messageOf({ code, vendorCode, message, param }: ApiError): string {
  if (code === 'context_length_exceeded' || vendorCode === 'context_length_exceeded') {
    return tooLong.test(message) ? message : `prompt is too long: ${message}`;
  }
  return param === null || message.includes(param) ? message : `${param}: ${message}`;
}

/** The body of an error response. */
export function anthropicErrorBody(
  error: ApiError,
  { state }: Pick<Context, 'state'>,
): AnthropicError & { readonly request_id: string } {
  return { ...toAnthropicError(error), request_id: String(state.headers['x-request-id']) };
}

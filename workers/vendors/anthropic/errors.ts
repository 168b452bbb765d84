import { parseExact } from '../../../shared/capabilities/exact-json.ts';
import { ApiError } from '../../../shared/errors.ts';
import { type JsonObject, parseObject } from '../support/json-object.ts';
import { readVendorError, vendorError } from '../vendor-error.ts';

/** Anthropic's types of errors and their statuses (https://docs.anthropic.com/en/api/errors). */
const statuses: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  authentication_error: 401,
  billing_error: 402,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  api_error: 500,
  timeout_error: 504,
  overloaded_error: 529,
};

/**
 * The messages, with status 400, for an account without credit, over its operator's own limit of spending, or closed: no caller
 * can fix that, but another vendor may serve.
 */
const unpaid =
  /^(Your credit balance is too low|You have reached your specified (workspace )?API usage limits|This organization has been disabled)\b/;

/** Anthropic's errors as the caller sees them. */
export class AnthropicErrors {
  private readonly vendor: string;
  private readonly apiKey: string;

  constructor(vendor: string, apiKey: string) {
    this.vendor = vendor;
    this.apiKey = apiKey;
  }

  /** Parses a whole answer. @throws ApiError for an error instead of an answer, and for anything but a JSON object. */
  answer(text: string): JsonObject {
    const answer = parseObject(text, parseExact);
    if (answer.type === 'error') throw this.reported(text);
    return answer;
  }

  /** The error of an answer that came under a status of success. */
  reported(text: string): ApiError {
    const details = readVendorError(text, this.apiKey);
    const status = details.code !== null && Object.hasOwn(statuses, details.code) ? statuses[details.code] : undefined;
    return this.of(vendorError(this.vendor, status ?? 500, details));
  }

  /** The error of a failed call. */
  of(thrown: unknown): ApiError {
    const error = ApiError.from(thrown);
    if (error.code !== 'invalid_request_error' || !unpaid.test(error.message)) return error;
    return vendorError(this.vendor, 402, { message: null, param: null, code: 'billing_error', status: null });
  }
}

import { parseExact } from '../../../shared/capabilities/exact-json.ts';
import { ApiError } from '../../../shared/errors.ts';
import type { HttpHeaders } from '../../http/exchange.ts';
import { type JsonObject, parseObject } from '../support/json-object.ts';
import { readRetryAfter, readVendorError } from '../support/read-vendor-error.ts';
import { overLimit, vendorError } from '../vendor-error.ts';

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

/** The message of a limit of tokens: `… of 30,000 input tokens per minute`. */
const tokenLimit = /^This request would exceed\b.* of [\d,]+ (?:(input|output) )?tokens per minute\b/;
/** The remaining tokens are told in thousands, rounded. */
const rounding = 500;

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

  /** The error of an answer with a status other than success. */
  readonly status = (status: number, body: string, headers: HttpHeaders): ApiError => {
    const details = readVendorError(body, this.apiKey);
    const [isOfTokens, kind] = tokenLimit.exec(details.message ?? '') ?? [];
    if (status === 429 && isOfTokens && isUnused(headers, kind)) {
      return overLimit(new Error(`the vendor ${this.vendor} answered 429, with nothing of its limit used`));
    }
    return vendorError(this.vendor, status, details, readRetryAfter(headers));
  };

  /** The error of a failed call. */
  of(thrown: unknown): ApiError {
    const error = ApiError.from(thrown);
    if (error.code !== 'invalid_request_error' || !unpaid.test(error.message)) return error;
    return vendorError(this.vendor, 402, { message: null, param: null, code: 'billing_error', status: null });
  }
}

/**
 * Whether a limit of tokens a minute has all of them left, so that it is the request alone that exceeds it
 * (https://platform.claude.com/docs/en/api/rate-limits#response-headers).
 */
function isUnused(headers: HttpHeaders, kind: string | undefined): boolean {
  const name = `anthropic-ratelimit-${kind === undefined ? '' : `${kind}-`}tokens`;
  const [limit, remaining] = ['limit', 'remaining'].map((field) => Number(headers[`${name}-${field}`] ?? Number.NaN));
  return Number(limit) > 0 && Number(remaining) + rounding >= Number(limit);
}

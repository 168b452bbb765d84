import { ApiError } from '../../shared/errors.ts';
import { baseRespFault } from './support/base-resp.ts';
import { isObject, type JsonObject } from './support/json-object.ts';
import { withoutSecrets } from './support/without-secrets.ts';
import {
  overLimitRefusals,
  quotaRefusals,
  type Refusals,
  tooLongRefusals,
  unknownModelRefusals,
} from './vendor-refusals.ts';

/** A vendor's error; what it does not report is null. */
export interface VendorErrorDetails {
  readonly message: string | null;
  readonly param: string | null;
  /** The vendor's code, or its type if it has no code; short and harmless, so that it can be logged. */
  readonly code: string | null;
  /** A status inside the body, for errors in a stream. */
  readonly status: number | null;
}

const maxMessage = 4_000;
const maxParam = 200;
const codePattern = /^[\w.:-]{1,100}$/;

/** Statuses of stream errors that have no status but a well-known code or type. */
const statusOfCode: Record<string, number> = {
  invalid_request_error: 400,
  context_length_exceeded: 400,
  insufficient_quota: 429,
  rate_limit_exceeded: 429,
  overloaded_error: 503,
  server_is_overloaded: 503,
  slow_down: 503,
  // Codes of a failed response (https://platform.openai.com/docs/api-reference/responses/object, `error.code`).
  invalid_prompt: 400,
  data_residency_mismatch: 400,
  bio_policy: 400,
  cyber_policy: 400,
  vector_store_timeout: 504,
  invalid_image: 400,
  invalid_image_format: 400,
  invalid_base64_image: 400,
  invalid_image_url: 400,
  image_too_large: 400,
  image_too_small: 400,
  image_parse_error: 400,
  image_content_policy_violation: 400,
  invalid_image_mode: 400,
  image_file_too_large: 400,
  unsupported_image_media_type: 400,
  empty_image_file: 400,
  failed_to_download_image: 400,
  image_file_not_found: 400,
};

const notAvailable = 'The model is not available at the moment.';

/** OpenAI's message for a path that it does not have. */
const wrongPath = /^Invalid URL\b/;
/** xAI's message, with status 400, for a wrong key. */
const wrongKey = /^Incorrect API key provided\b/;
/** OpenRouter's message, with status 403, for a prompt that its moderation refuses. */
const moderated = /\brequires moderation\b.*\bflagged\b/;
/** OpenRouter's messages, with status 402, for a request that is larger than its account's credit, which serves smaller ones. */
const unaffordable =
  /^This request requires more credits, or fewer max_tokens\b.*\bcan only afford [1-9]|^(Prompt) tokens limit exceeded\b/;
/** OpenAI's code for its flex tier without capacity. */
const noFlex = 'resource_unavailable';
/** Codes of an overloaded vendor that come with the status of a limit: Moonshot. */
const overloadedCodes: ReadonlySet<unknown> = new Set(['engine_overloaded_error']);

function matches({ code, message }: VendorErrorDetails, { codes, messages }: Refusals): boolean {
  return codes.has(code) || (message !== null && messages.some((pattern) => pattern.test(message)));
}

function shortText(value: unknown, maxLength: number): string | null {
  return typeof value === 'string' && value !== '' ? value.slice(0, maxLength) : null;
}

function shortCode(value: unknown): string | null {
  return typeof value === 'string' && codePattern.test(value) ? value : null;
}

/**
 * The first of a list of faults (`{"detail": [{loc, msg, type}]}`), which FastAPI, under many vendors, returns with 422; Mistral
 * has the list in the place of its message, and others (DeepInfra) have one object.
 */
function readFault({ detail, message }: JsonObject): JsonObject {
  const faults = detail ?? (isObject(message) ? message.detail : undefined);
  const [first]: unknown[] = Array.isArray(faults) ? faults : [faults];
  return isObject(first) ? first : {};
}

/** What the vendor behind OpenRouter has said, whose own message is `Provider returned error` then. */
function readUpstream({ metadata }: JsonObject, secrets: readonly string[]): VendorErrorDetails | undefined {
  const raw = isObject(metadata) && typeof metadata.raw === 'string' ? metadata.raw.trim() : '';
  // Pages of proxies say nothing to a caller.
  if (raw === '' || raw.startsWith('<')) return undefined;
  const details = readVendorError(raw, ...secrets);
  return details.message === null && !/^[{[]/.test(raw) ? { ...details, message: raw.slice(0, maxMessage) } : details;
}

/** A field's path: `["body", "image_size", "width"]` is `image_size.width`. */
function pathOf(loc: unknown): string | null {
  return Array.isArray(loc) ? loc.filter((part, index) => index > 0 || part !== 'body').join('.') : null;
}

/**
 * Reads an error body: OpenAI's `{"error": {message, type, param, code}}`, or similar shapes (`{"error": "…"}`, `{"errors":
 * [{message, code}]}`, `{"message": "…"}`, `{"detail": "…"}`, `{"detail": [{loc, msg, type}]}`), or the one that it passes on
 * from another vendor. Anything else yields nulls.
 * @param secrets The vendor's keys, which are removed from each text before anything else sees it, however the JSON escapes them.
 */
export function readVendorError(body: string, ...secrets: readonly string[]): VendorErrorDetails {
  const hide = withoutSecrets(secrets);
  let parsed: unknown;
  try {
    parsed = JSON.parse(body, (_, value) => (typeof value === 'string' ? hide(value) : value));
  } catch {
    parsed = null;
  }
  // Vertex puts its error into a list.
  if (Array.isArray(parsed)) [parsed] = parsed;
  const root = isObject(parsed) ? parsed : {};
  const fault = baseRespFault(root);
  if (fault !== undefined) return { ...fault, message: shortText(fault.message, maxMessage), param: null };
  // Cloudflare has a list of errors.
  const [first]: unknown[] = Array.isArray(root.errors) ? root.errors : [];
  const error = [root.error, first].find(isObject) ?? root;
  // The type of a stream event that is itself the error (`{"type":"error","message":…}`) carries no information.
  const type = error.type === 'error' ? null : shortCode(error.type);
  // Databricks has another name for it.
  const code = shortCode(error.code) ?? shortCode(error.error_code) ?? type;
  const known = [code, type].find((name) => name !== null && Object.hasOwn(statusOfCode, name));
  const status = [error.status, error.status_code, error.code].find(
    (value): value is number => Number.isInteger(value) && (value as number) >= 400 && (value as number) < 600,
  );
  const detail = readFault(root);
  const upstream = readUpstream(error, secrets);
  const details = {
    message:
      upstream?.message ??
      shortText(error.message, maxMessage) ??
      shortText(root.error ?? root.detail, maxMessage) ??
      shortText(detail.msg ?? detail.message ?? detail.error, maxMessage),
    param: upstream?.param ?? shortText(error.param, maxParam) ?? shortText(pathOf(detail.loc), maxParam),
    code: upstream?.code ?? code ?? shortCode(detail.type),
    status: status ?? (known ? (statusOfCode[known] ?? null) : null),
  };
  return details.status === null && matches(details, tooLongRefusals) ? { ...details, status: 400 } : details;
}

/**
 * The wait that a vendor requests, from `retry-after-ms` or `Retry-After` (seconds, or an HTTP date).
 * @returns milliseconds from now, or undefined if the headers have nothing usable.
 */
export function readRetryAfter(headers: Record<string, string | string[] | undefined>): number | undefined {
  const text = (name: string): string => String(headers[name] ?? '').trim();
  const milliseconds = text('retry-after-ms');
  if (/^\d+(\.\d+)?$/.test(milliseconds)) return Number(milliseconds);
  const seconds = text('retry-after');
  if (/^\d+(\.\d+)?$/.test(seconds)) return Number(seconds) * 1000;
  // A date begins with its weekday. Of anything else, such as `-5`, V8 makes a date, too, long past.
  const date = /^[A-Za-z]{3}/.test(seconds) ? Date.parse(seconds) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}

/**
 * A vendor's failure as the caller sees it. What only the operator can fix (key, quota, route) becomes a 503, whose `cause` has
 * the vendor's answer for the operator.
 */
export function vendorError(
  vendor: string,
  status: number,
  details: VendorErrorDetails,
  retryAfterMs?: number,
): ApiError {
  const wait = { vendorStatus: status, ...(retryAfterMs !== undefined && { retryAfterMs }) };
  const cause = new Error(`the vendor ${vendor} answered ${status}${details.code ? ` (${details.code})` : ''}`);
  switch (status) {
    case 401:
    case 403:
      if (moderated.test(details.message ?? '')) return vendorError(vendor, 400, details);
      return refusedKey(status, details, cause);
    case 400:
    case 413:
    case 422:
      if (wrongKey.test(details.message ?? '')) return refusedKey(401, details, cause);
      // Groq's 413 for more tokens than the account has in a minute, which its message names.
      if (status === 413 && details.code === 'rate_limit_exceeded') {
        return vendorError(vendor, 429, details, retryAfterMs);
      }
      if (quotaRefusals.codes.has(details.code)) return unpaid(cause);
      if (matches(details, unknownModelRefusals)) return missingModel(cause);
      if (matches(details, tooLongRefusals) && details.code !== 'context_length_exceeded') {
        const { param, message } = details;
        const options = { param, isQuoted: message !== null, vendorStatus: status, cause };
        return new ApiError('context_length_exceeded', message ?? 'The prompt is too long for the model.', options);
      }
      return new ApiError('invalid_request_error', details.message ?? "The model's vendor refused the request.", {
        param: details.param,
        vendorCode: details.code,
        isQuoted: details.message !== null,
        vendorStatus: status,
        cause,
      });
    case 404:
      if (matches(details, unknownModelRefusals)) return missingModel(cause);
      // OpenAI's type for what the request names: a model of another endpoint, a vector store. Else the address may be wrong.
      if (details.code !== 'invalid_request_error' || wrongPath.test(details.message ?? '')) break;
      return new ApiError('not_found', details.message ?? 'Not found.', {
        ...wait,
        param: details.param,
        isQuoted: details.message !== null,
        cause,
      });
    case 408:
    case 504:
      return new ApiError('timeout', "The model's vendor did not answer in time.", { cause, ...wait });
    case 429:
      // The vendor's own message is left out: it names the operator's organization.
      if (matches(details, quotaRefusals)) return unpaid(cause);
      if (matches(details, overLimitRefusals)) return overLimit(cause);
      // As a 429 it would count against the key, which has done nothing wrong.
      if (details.code === noFlex) return withoutFlex(wait, cause);
      if (overloadedCodes.has(details.code)) return overloaded({ ...wait, vendorStatus: 503 }, cause);
      return new ApiError('rate_limit_exceeded', "The model's vendor is limiting requests: try again later.", {
        retryAfterMs: retryAfterMs ?? 1000,
        vendorStatus: status,
        cause,
      });
    case 402:
    case 412:
      return unpaid(cause, unaffordable.exec(details.message ?? ''));
    case 498:
    case 503:
    case 529:
      return overloaded(wait, cause);
    default:
      if (status < 400) break;
      return new ApiError('server_error', `The model's vendor had an error (status ${status}).`, { cause, ...wait });
  }
  return new ApiError('service_unavailable', notAvailable, { cause, ...wait });
}

/**
 * The operator's account at the vendor has no credit, or is suspended (412 at Fireworks). Some vendors say so with the status of
 * a bad request or of a limit; the status here marks that waiting is of no use, but another key or vendor may serve.
 * @param tooLarge set if the credit is short of this request alone
 */
function unpaid(cause: Error, tooLarge: RegExpExecArray | null = null): ApiError {
  if (tooLarge === null) return new ApiError('service_unavailable', notAvailable, { vendorStatus: 402, cause });
  const [param, advice] = tooLarge[1] ? ['messages', 'Shorten the prompt'] : ['max_tokens', 'Lower max_tokens'];
  const message = `The model is not available at the moment for a request of this size. ${advice}, or try again later.`;
  return new ApiError('service_unavailable', message, { param, retryable: false, vendorStatus: 402, cause });
}

/**
 * The request alone exceeds the limit of the operator's account. As a 429 it would be repeated until its deadline, and the key would be
 * left alone by all others after each time.
 */
export function overLimit(cause: Error): ApiError {
  const message =
    "The request takes more tokens than the model's vendor allows this gateway at a time: shorten it, or lower max_tokens.";
  return new ApiError('request_too_large', message, { vendorStatus: 413, cause });
}

/** OpenAI's own error, for its clients; to the router it is Groq's 498, which is held against neither the key nor the route. */
function withoutFlex(wait: { readonly retryAfterMs?: number }, cause: Error): ApiError {
  const message =
    "The model's vendor has no capacity for the service tier flex: try again later, or with another tier.";
  return new ApiError('rate_limit_exceeded', message, {
    retryAfterMs: 1000,
    ...wait,
    vendorCode: noFlex,
    vendorStatus: 498,
    cause,
  });
}

function overloaded(wait: { readonly vendorStatus: number; readonly retryAfterMs?: number }, cause: Error): ApiError {
  return new ApiError('service_unavailable', "The model's vendor is overloaded: try again later.", { cause, ...wait });
}

/**
 * The vendor refuses the operator's key. The vendor's message is withheld from callers, because it names the operator's
 * organization; and a retry cannot succeed before the operator has fixed it.
 */
function refusedKey(status: number, { message }: VendorErrorDetails, cause: Error): ApiError {
  return new ApiError(
    'service_unavailable',
    "The model is not available: its vendor refuses this gateway's credentials. The gateway's operator must check the vendor settings.",
    { retryable: false, vendorStatus: status, vendorSentence: message, cause },
  );
}

/** Without the vendor's message, which has the vendor's own name of the model. The status marks that another route may have it. */
function missingModel(cause: Error): ApiError {
  return new ApiError('model_not_found', "The model's vendor does not offer it.", { vendorStatus: 404, cause });
}

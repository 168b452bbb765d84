import { tellsOf, tooLongRefusals } from '../vendor-refusals.ts';
import { baseRespFault } from './base-resp.ts';
import { isObject, type JsonObject } from './json-object.ts';
import { withoutSecrets } from './without-secrets.ts';

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
const statusPattern = /^[45]\d\d$/;

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

/** Python's null as text, which LiteLLM writes for an error without a type or a param (https://github.com/BerriAI/litellm/pull/39521). */
const noValue = 'None';

function shortText(value: unknown, maxLength: number): string | null {
  return typeof value === 'string' && value !== '' && value !== noValue ? value.slice(0, maxLength) : null;
}

function shortCode(value: unknown): string | null {
  return typeof value === 'string' && value !== noValue && codePattern.test(value) ? value : null;
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
  // LiteLLM and Azure write the status in the place of a code, as text.
  const isStatus = typeof error.code === 'string' && statusPattern.test(error.code);
  // Databricks has another name for it.
  const code = (isStatus ? null : shortCode(error.code)) ?? shortCode(error.error_code) ?? type;
  const known = [code, type].find((name) => name !== null && Object.hasOwn(statusOfCode, name));
  const status = [error.status, error.status_code, isStatus ? Number(error.code) : error.code].find(
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
  return details.status === null && tellsOf(details, tooLongRefusals) ? { ...details, status: 400 } : details;
}

/** A date begins with its weekday. Of anything else, such as `-5`, V8 makes a date, too, long past. */
function readDate(text: string): number {
  return /^[A-Za-z]{3}/.test(text) ? Date.parse(text) : Number.NaN;
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
  const date = readDate(seconds);
  // By the vendor's own clock, if it tells its time, too: this host's may be wrong by an hour.
  return Number.isNaN(date) ? undefined : Math.max(0, date - (readDate(text('date')) || Date.now()));
}

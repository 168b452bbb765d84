import { parseExact } from '../../../shared/capabilities/exact-json.ts';
import { ApiError } from '../../../shared/errors.ts';
import type { HttpHeaders } from '../../http/exchange.ts';
import { isObject, type JsonObject, parseObject } from '../support/json-object.ts';
import { readRetryAfter, readVendorError, type VendorErrorDetails } from '../support/read-vendor-error.ts';
import { vendorError } from '../vendor-error.ts';

/** The error fields that Gemini sends in addition to the HTTP status. */
interface GeminiErrorDetails extends VendorErrorDetails {
  readonly retryAfterMs?: number;
}

const statusName = /^[A-Z_]{1,60}$/;
const tooLongPrompt = /input token count .*(exceeds the maximum|supports up to)/i;

/**
 * The operator's own faults that Gemini reports as a bad request: an unknown key, and an account that it does not serve
 * (https://ai.google.dev/gemini-api/docs/troubleshooting).
 */
function isOperatorsFault(name: unknown, reasons: readonly unknown[]): boolean {
  return (
    name === 'FAILED_PRECONDITION' || reasons.some((reason) => /^API_KEY_|^SERVICE_DISABLED$/.test(String(reason)))
  );
}

/** Parses JSON of Gemini, and its errors: google.rpc.Status (https://google.aip.dev/193). */
export class GeminiAnswerReader {
  private readonly vendor: string;
  private readonly apiKey: string;

  constructor(vendor: string, apiKey: string) {
    this.vendor = vendor;
    this.apiKey = apiKey;
  }

  /** Parses a whole answer. @throws ApiError for an error instead of an answer, and for anything but a JSON object. */
  answer(text: string): JsonObject {
    const answer = parseObject(text, parseExact);
    if (answer.error) throw this.statusError(200, text, {});
    return answer;
  }

  /** The error of an answer. @param status that of HTTP; if it is one of success, the error's own counts. */
  statusError(status: number, body: string, headers: HttpHeaders): ApiError {
    const details = this.read(body);
    const wait = readRetryAfter(headers) ?? details.retryAfterMs;
    const isSuccess = status >= 200 && status < 300;
    if (isSuccess && details.status === null) {
      return new ApiError('server_error', details.message ?? "The model's vendor had an error.", {
        vendorCode: details.code,
        isQuoted: details.message !== null,
      });
    }
    return vendorError(this.vendor, details.status ?? status, details, wait);
  }

  private read(body: string): GeminiErrorDetails {
    const base = readVendorError(body, this.apiKey);
    const error = errorOf(body);
    const details = Array.isArray(error.details) ? error.details.filter(isObject) : [];
    const name = typeof error.status === 'string' && statusName.test(error.status) ? error.status : null;
    const retryAfterMs = retryDelay(details);
    const wait = retryAfterMs === undefined ? {} : { retryAfterMs };
    const reasons = details.map(({ reason }) => reason);
    if (isOperatorsFault(name, reasons)) return { ...base, code: name, status: 403 };
    if (name === 'NOT_FOUND') return { ...base, code: 'model_not_found', status: 404 };
    const isTooLong = name === 'INVALID_ARGUMENT' && tooLongPrompt.test(base.message ?? '');
    return { ...base, ...wait, code: isTooLong ? 'context_length_exceeded' : (name ?? base.code) };
  }
}

function errorOf(body: string): JsonObject {
  try {
    const answer: unknown = JSON.parse(body);
    // A stream's error may come in a list.
    const parsed: unknown = Array.isArray(answer) ? answer[0] : answer;
    return isObject(parsed) && isObject(parsed.error) ? parsed.error : {};
  } catch {
    return {};
  }
}

/** google.rpc.RetryInfo, in milliseconds: its `retryDelay` is a number of seconds with an `s`. */
function retryDelay(details: readonly JsonObject[]): number | undefined {
  for (const { retryDelay: delay } of details) {
    const [, seconds] = /^(\d+(?:\.\d+)?)s$/.exec(String(delay)) ?? [];
    if (seconds !== undefined) return Number(seconds) * 1000;
  }
  return undefined;
}

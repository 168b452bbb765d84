import type { ApiError } from '../../../shared/errors.ts';
import type { HttpHeaders } from '../../http/exchange.ts';
import { isObject } from '../support/json-object.ts';
import { readRetryAfter, readVendorError } from '../support/read-vendor-error.ts';
import { contentRefused } from '../support/vendor-task-calls.ts';
import { vendorError } from '../vendor-error.ts';

/**
 * HTTP statuses of Kling's service codes (https://app.klingai.com/global/dev/document-api/apiReference/commonInfo, "Error Code").
 * Some come with 429 although waiting does not help: an account without funds, an address that is not allowed.
 */
const statuses: Readonly<Record<number, number>> = {
  1000: 401,
  1001: 401,
  1002: 401,
  1003: 401,
  1004: 401,
  1100: 402,
  1101: 402,
  1102: 402,
  1103: 403,
  1200: 400,
  1201: 400,
  1202: 404,
  1203: 404,
  1302: 429,
  1303: 429,
  1304: 403,
  5000: 500,
  5001: 503,
  5002: 504,
};
/** Violations of the platform's rules. */
const refusals = [1300, 1301];
/** A missing resource; for a creation, the model. */
const missing = 1203;

/** An error of Kling's, `{code, message, request_id}`. @param secrets that it must not contain */
export function klingError(
  vendor: string,
  status: number,
  body: string,
  headers: HttpHeaders,
  secrets: readonly string[],
): ApiError {
  const code = serviceCode(body);
  if (refusals.includes(code)) return contentRefused();
  const details = readVendorError(body, ...secrets);
  const named = code === missing ? { ...details, code: 'model_not_found' } : details;
  return vendorError(vendor, statuses[code] ?? status, named, readRetryAfter(headers));
}

function serviceCode(body: string): number {
  let answer: unknown;
  try {
    answer = JSON.parse(body);
  } catch {
    return 0;
  }
  return isObject(answer) && typeof answer.code === 'number' ? answer.code : 0;
}

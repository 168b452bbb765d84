import type { ApiError } from '../../../shared/errors.ts';
import type { HttpHeaders } from '../../http/http-client.ts';
import { contentRefused } from '../support/begun-task.ts';
import { isObject } from '../support/json-object.ts';
import { readRetryAfter, readVendorError, vendorError } from '../vendor-error.ts';

/**
 * Kling's service codes (https://app.klingai.com/global/dev/document-api/apiReference/commonInfo, "Error Code") as the statuses
 * that they mean. Some come with 429 that no waiting mends: an account without funds, an address that is not allowed.
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
/** The platform's rules were broken. */
const refusals = [1300, 1301];
/** A resource that is not there; of a creation, the model. */
const missing = 1203;

/** An error of Kling's, `{code, message, request_id}`. @param secrets what it must not carry */
export function klingError(
  vendor: string,
  status: number,
  body: string,
  headers: HttpHeaders,
  secrets: readonly string[],
): ApiError {
  const harmless = secrets.reduce((text, secret) => text.replaceAll(secret, '[key]'), body);
  const code = serviceCode(harmless);
  if (refusals.includes(code)) return contentRefused();
  const details = readVendorError(harmless, '');
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

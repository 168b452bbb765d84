import { ApiError, type ErrorCode, errorTable } from '../../errors.ts';
import { withoutKeys, withoutWordsOf } from '../../runtime/redact.ts';

/** Why a job failed, as its record keeps it. */
export interface ErrorDetails {
  readonly message: string;
  /** The request field at fault. */
  readonly param?: string;
  /** The code that the caller was shown, where it is not the job's own. */
  readonly code?: string;
  /** What its vendor answered, where the vendor caused it. */
  readonly vendorStatus?: number;
}

/** A record stays for good: what a vendor has to say at length is cut. */
const maxMessageCharacters = 1000;
const maxParamCharacters = 200;
const maxCodeCharacters = 100;

/**
 * The details of an error as a record keeps them: JSON text of `ErrorDetails`, without keys, and without what the request says.
 * @param request the text of the job's request; undefined where it is not known: then a vendor's words are left out
 */
export function errorDetails(error: ApiError, request?: string): string {
  const { param, vendorCode, vendorStatus } = error;
  const details: ErrorDetails = {
    message: keptMessage(error, request).slice(0, maxMessageCharacters),
    ...(param !== null && { param: keep(param, request, maxParamCharacters) }),
    ...(vendorCode !== null && { code: vendorCode.slice(0, maxCodeCharacters) }),
    ...(vendorStatus !== undefined && { vendorStatus }),
  };
  return JSON.stringify(details);
}

function keptMessage(error: ApiError, request: string | undefined): string {
  const { message, vendorStatus, vendorCode } = error;
  const words = request === undefined ? undefined : withoutWordsOf(message, request);
  if (words !== undefined) return withoutKeys(words);
  // Of what is worded here nothing repeats a request.
  const isVendors = vendorCode !== null || (vendorStatus !== undefined && error.status < 500);
  return isVendors ? "The model's vendor refused the request." : withoutKeys(message);
}

function keep(text: string, request: string | undefined, max: number): string {
  return withoutKeys((request === undefined ? text : withoutWordsOf(text, request)) ?? '').slice(0, max);
}

/** Reads what `errorDetails` has written; undefined where there is nothing, or nothing of that form. */
export function readErrorDetails(text: string | null | undefined): ErrorDetails | undefined {
  if (!text) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const { message, param, code, vendorStatus } = value as Record<string, unknown>;
  if (typeof message !== 'string') return undefined;
  return {
    message,
    ...(typeof param === 'string' && { param }),
    ...(typeof code === 'string' && { code }),
    ...(typeof vendorStatus === 'number' && { vendorStatus }),
  };
}

/** The error that a job ended with, as far as its state or record tells it. */
export function recordedError(code: ErrorCode | undefined, text: string | undefined): ApiError {
  const known = code !== undefined && Object.hasOwn(errorTable, code) ? code : 'server_error';
  const details = readErrorDetails(text);
  if (details === undefined) return new ApiError(known, 'The details of this error have expired.');
  const { message, param, code: vendorCode, vendorStatus } = details;
  return new ApiError(known, message, {
    param: param ?? null,
    vendorCode: vendorCode ?? null,
    ...(vendorStatus !== undefined && { vendorStatus }),
  });
}

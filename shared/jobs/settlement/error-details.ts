import { ApiError, type ErrorCode, errorTable } from '../../errors.ts';
import { withoutKeys, withoutWordsOf } from '../../runtime/redact.ts';

/** Why a job failed, as stored in its record. */
export interface ErrorDetails {
  readonly message: string;
  /** The request field at fault. */
  readonly param?: string;
  /** The code shown to the caller, if it differs from the job's. */
  readonly code?: string;
  /** The vendor's HTTP status, if the vendor caused the error. */
  readonly vendorStatus?: number;
}

/** Records are permanent, so long vendor messages are truncated. */
const maxMessageCharacters = 1000;
const maxParamCharacters = 200;
const maxCodeCharacters = 100;

/**
 * An error's details for the record: JSON text of `ErrorDetails`, without keys and without text of the request.
 * @param request the text of the job's request; if undefined (unknown), the vendor's message is left out
 * @param files names of the files that were sent with the request
 */
export function errorDetails(error: ApiError, request?: string, files: readonly string[] = []): string {
  const { param, vendorCode, vendorStatus } = error;
  const details: ErrorDetails = {
    message: keptMessage(error, request, files).slice(0, maxMessageCharacters),
    ...(param !== null && { param: keep(param, request, maxParamCharacters) }),
    ...(vendorCode !== null && { code: vendorCode.slice(0, maxCodeCharacters) }),
    ...(vendorStatus !== undefined && { vendorStatus }),
  };
  return JSON.stringify(details);
}

function keptMessage(error: ApiError, request: string | undefined, files: readonly string[]): string {
  const { message, isQuoted, vendorStatus, vendorCode, status } = error;
  const words = request === undefined ? undefined : withoutWordsOf(message, request, files);
  if (words !== undefined) return withoutKeys(words);
  // Messages worded by the gateway never repeat a request.
  const isVendors = isQuoted || vendorCode !== null || (vendorStatus !== undefined && status < 500);
  if (!isVendors) return withoutKeys(message);
  return status < 500 ? "The model's vendor refused the request." : "The model's vendor had an error.";
}

function keep(text: string, request: string | undefined, max: number): string {
  return withoutKeys((request === undefined ? text : withoutWordsOf(text, request)) ?? '').slice(0, max);
}

/** Parses the output of `errorDetails`; undefined if it is missing or malformed. */
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

/** The error that a job ended with, restored from its state or record. */
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

import type { ApiError } from '../../shared/errors.ts';

/** Limits that a vendor has told, a minute. */
export interface ToldLimits {
  readonly rpm?: number | undefined;
  readonly tpm?: number | undefined;
}

/** Headers of OpenAI, which most vendors have taken over, and of Anthropic. */
const requestHeaders = ['x-ratelimit-limit-requests', 'anthropic-ratelimit-requests-limit'];
const tokenHeaders = ['x-ratelimit-limit-tokens', 'anthropic-ratelimit-tokens-limit'];
/** Whatever a vendor tells, these are its limits at most. */
const maxTold = 1_000_000_000_000;

/** Beside the error, as nobody but the router needs them. */
const told = new WeakMap<ApiError, ToldLimits>();

/** Keeps the limits that a refusal's headers tell. */
export function keepToldLimits(
  error: ApiError,
  headers: Readonly<Record<string, string | string[] | undefined>>,
): ApiError {
  const rpm = readLimit(headers, requestHeaders);
  const tpm = readLimit(headers, tokenHeaders);
  if (rpm !== undefined || tpm !== undefined) told.set(error, { rpm, tpm });
  return error;
}

/** The limits that a vendor has told with an error. */
export function toldLimits(error: ApiError): ToldLimits {
  return told.get(error) ?? {};
}

function readLimit(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  names: readonly string[],
): number | undefined {
  for (const name of names) {
    const text = String(headers[name] ?? '').trim();
    const limit = /^\d{1,15}$/.test(text) ? Number(text) : 0;
    if (limit >= 1 && limit <= maxTold) return limit;
  }
  return undefined;
}

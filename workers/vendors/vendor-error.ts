import { ApiError } from '../../shared/errors.ts';
import type { VendorErrorDetails } from './support/read-vendor-error.ts';
import { overLimitRefusals, quotaRefusals, tellsOf, tooLongRefusals, unknownModelRefusals } from './vendor-refusals.ts';

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
      if (tellsOf(details, unknownModelRefusals)) return missingModel(cause);
      if (tellsOf(details, tooLongRefusals) && details.code !== 'context_length_exceeded') {
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
      if (tellsOf(details, unknownModelRefusals)) return missingModel(cause);
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
      if (tellsOf(details, quotaRefusals)) return unpaid(cause);
      if (tellsOf(details, overLimitRefusals)) return overLimit(cause);
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

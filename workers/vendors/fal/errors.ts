import { ApiError } from '../../../shared/errors.ts';
import type { HttpClientOptions } from '../../http/exchange.ts';
import { parseObject } from '../support/json-object.ts';
import { readRetryAfter, readVendorError } from '../support/read-vendor-error.ts';
import { vendorError } from '../vendor-error.ts';

/** The failure of a request itself, which its result is then: it is the same at each try. */
export class FailedRequestError extends ApiError {
  constructor({ code, message, vendorStatus = 500, retryAfterMs = 0, cause }: ApiError) {
    super(code, message, { vendorStatus, ...(retryAfterMs > 0 && { retryAfterMs }), cause });
  }
}

/**
 * Reads the status errors of fal. A failed request's are of two shapes: a model's have a list of faults, `{"detail": [{type, msg}]}`
 * (https://fal.ai/docs/documentation/model-apis/errors), those of running it an `error_type`
 * (https://fal.ai/docs/documentation/model-apis/request-errors). Any other 5xx is of the queue, which may have the result.
 */
export function falErrors(vendor: string, secret: string): NonNullable<HttpClientOptions['toStatusError']> {
  return (status, body, headers) => {
    const error = vendorError(vendor, status, readVendorError(body, secret), readRetryAfter(headers));
    return status >= 500 && isOfRequest(body) ? new FailedRequestError(error) : error;
  };
}

function isOfRequest(body: string): boolean {
  try {
    const { detail, error_type: type } = parseObject(body);
    return Array.isArray(detail) || typeof type === 'string';
  } catch {
    return false;
  }
}

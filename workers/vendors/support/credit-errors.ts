import type { HttpClientOptions } from '../../http/exchange.ts';
import { vendorError } from '../vendor-error.ts';
import { readRetryAfter, readVendorError, type VendorErrorDetails } from './read-vendor-error.ts';

/** Vendors' messages, with status 400, for an account without credits: no caller can fix that, but another vendor may serve. */
const unpaid = /(insufficient|not enough|not have enough) credits/i;

/** Reads the status errors of vendors that return 400, not 402, when the operator's credits are used up. */
export function creditErrors(
  vendor: string,
  secret: string,
  read: (body: string, secret: string) => VendorErrorDetails = readVendorError,
): NonNullable<HttpClientOptions['toStatusError']> {
  return (status, body, headers) => {
    const details = read(body, secret);
    const isUnpaid = status === 400 && unpaid.test(details.message ?? '');
    return vendorError(vendor, isUnpaid ? 402 : status, details, readRetryAfter(headers));
  };
}

import { ApiError } from '../../../shared/errors.ts';
import { givenChatFields, supportOf } from '../../../shared/vendors/field-support.ts';
import type { ChatFieldSupport } from '../../../shared/vendors/vendor-description.ts';

/**
 * The error for a significant part of a request that the model's vendor does not support.
 * @param param Its path: `messages[0].content[1]`.
 * @param reason What the vendor takes instead, or why it takes nothing.
 */
export function unsupportedField(param: string, reason: string): ApiError {
  return new ApiError('invalid_request_error', `Unsupported value: '${param}': ${reason}.`, {
    param,
    vendorCode: 'unsupported_value',
  });
}

/** Names of fields by which vendors send a result, or word of it, to an address: past this gateway and its charge. */
const elsewhere = /^(callback|webhook)/;

/** @throws ApiError 400 for a field of a vendor's own that would have the result sent elsewhere. */
export function refuseDelivery(own: Readonly<Record<string, unknown>>): void {
  const name = Object.keys(own).find((each) => elsewhere.test(each) && own[each] != null);
  if (name !== undefined) throw unsupportedField(name, 'results are not sent elsewhere');
}

/** @throws ApiError 400 for the first field of a chat that the vendor rejects. */
export function refuseFields(support: ChatFieldSupport, chat: Readonly<Record<string, unknown>>): void {
  for (const field of givenChatFields(chat)) {
    if (supportOf(support, field) === 'rejected') throw unsupportedField(field, "the model's vendor does not have it");
  }
}

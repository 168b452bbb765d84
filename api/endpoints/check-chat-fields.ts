import type { UnsupportedParameters } from '../../shared/accounts/api-keys.ts';
import type { RoutedModel } from '../../shared/catalogue/catalogue.ts';
import { supportOf } from '../../shared/catalogue/chat-fields.ts';
import { chatFieldSupport } from '../../shared/vendors/chat-field-support.ts';
import { checkGivenFields } from '../pipeline/check-given-fields.ts';

/** The chat fields of a request. */
export interface ChatFieldRequirements {
  /** Names of fields in a chat: see `givenChatFields`. */
  readonly chatFields: readonly string[];
  /** The caller's names, if they differ. */
  readonly chatFieldNames?: Readonly<Record<string, string>>;
}

/**
 * Checks the fields of a chat against the vendor of a route.
 * @returns the ignored fields by the caller's names: hints that the vendor's worker omits
 * @throws ApiError 400 that names a field whose absence would change the answer, unless those are to be dropped, too.
 */
export function checkChatFields(
  { chatFields, chatFieldNames = {} }: ChatFieldRequirements,
  { id, vendorRow }: Pick<RoutedModel, 'id' | 'vendorRow'>,
  unsupported: UnsupportedParameters = 'refuse',
): readonly string[] {
  const support = chatFieldSupport(vendorRow);
  if (support === undefined) return [];
  const fields = chatFields.map((field) => {
    const type = /^response_format\.(.*)$/s.exec(field)?.[1];
    const chatName = type === undefined ? field : 'response_format';
    const name = Object.hasOwn(chatFieldNames, chatName) ? String(chatFieldNames[chatName]) : chatName;
    return { name, type, support: supportOf(support, field) };
  });
  return checkGivenFields(fields, id, unsupported);
}

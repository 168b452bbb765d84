import type { UnsupportedParameters } from '../../shared/accounts/api-keys.ts';
import type { RoutedModel } from '../../shared/catalogue/catalogue.ts';
import { supportOf } from '../../shared/catalogue/chat-fields.ts';
import { chatFieldSupport } from '../../shared/vendors/chat-field-support.ts';
import { checkGivenFields } from '../pipeline/check-given-fields.ts';

/** Which fields of a chat a request asks for. */
export interface ChatFieldRequirements {
  /** By the names of a chat: see `givenChatFields`. */
  readonly chatFields: readonly string[];
  /** What the caller calls them, where that differs. */
  readonly chatFieldNames?: Readonly<Record<string, string>>;
}

/**
 * Holds the fields of a chat against the vendor of a route: where its worker leaves out hints, they are
 * answered by the caller's names.
 * @throws ApiError 400 that names a field whose absence would change the answer, unless such ones are to be dropped, too.
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

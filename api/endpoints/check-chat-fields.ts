import type { UnsupportedParameters } from '../../shared/api-keys.ts';
import { chatFieldFates } from '../../shared/catalogue/chat-field-fates.ts';
import { fateOf } from '../../shared/catalogue/chat-fields.ts';
import type { Model } from '../../shared/catalogue/models.ts';
import { invalidParameter } from './invalid-request.ts';

/** Which fields of a chat a request asks for. */
export interface ChatFieldTraits {
  /** By the names of a chat: see `givenChatFields`. */
  readonly chatFields: readonly string[];
  /** What the caller calls them, where that differs. */
  readonly chatFieldNames?: Readonly<Record<string, string>>;
}

/**
 * Holds the fields of a chat against the vendor that comes first for the model: where its worker leaves out hints, they are
 * answered by the caller's names.
 * @throws ApiError 400 that names a field whose absence would change the answer, unless such ones are to be dropped, too.
 */
export function checkChatFields(
  { chatFields, chatFieldNames = {} }: ChatFieldTraits,
  { id, routes }: Pick<Model, 'id' | 'routes'>,
  unsupported: UnsupportedParameters = 'refuse',
): readonly string[] {
  const fates = chatFieldFates(routes[0]?.vendor ?? '');
  if (fates === undefined) return [];
  const dropped: string[] = [];
  for (const field of chatFields) {
    const fate = fateOf(fates, field);
    if (fate === 'kept' || fate === 'mapped') continue;
    const format = /^response_format\.(.*)$/s.exec(field)?.[1];
    const chatName = format === undefined ? field : 'response_format';
    const name = Object.hasOwn(chatFieldNames, chatName) ? String(chatFieldNames[chatName]) : chatName;
    if (fate === 'refused' && unsupported === 'refuse') throw unsupportedField(name, format, id);
    dropped.push(headerWord(name));
  }
  return dropped;
}

/** Names of fields are the caller's text; in a header stands only what cannot end it. */
function headerWord(name: string): string {
  return /^[\w.-]{1,64}$/.test(name) ? name : 'unknown';
}

function unsupportedField(name: string, format: string | undefined, model: string): Error {
  const what = format === undefined ? `'${name}'` : `'${name}' of the type '${format}'`;
  return invalidParameter(name, `${what} is not supported by the vendor of the model \`${model}\`.`);
}

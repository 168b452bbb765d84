import type { UnsupportedParameters } from '../../shared/accounts/api-keys.ts';
import type { FieldSupport } from '../../shared/catalogue/chat-fields.ts';
import { invalidParameter } from './invalid-request.ts';

/** A field that a request gives, and what becomes of it at the vendor of a route. */
export interface GivenField {
  /** As the caller calls it. */
  readonly name: string;
  /** The type that is at fault, of a field that has several. */
  readonly type?: string | undefined;
  readonly support: FieldSupport;
}

/**
 * The names of the fields that are left out.
 * @param model for the message
 * @throws ApiError 400 that names a field whose absence would change the answer, unless such ones are to be dropped, too.
 */
export function checkGivenFields(
  fields: readonly GivenField[],
  model: string,
  unsupported: UnsupportedParameters,
): readonly string[] {
  const dropped: string[] = [];
  for (const { name, type, support } of fields) {
    if (support === 'native' || support === 'translated') continue;
    if (support === 'rejected' && unsupported === 'refuse') throw unsupportedField(name, type, model);
    dropped.push(name);
  }
  return dropped;
}

function unsupportedField(name: string, type: string | undefined, model: string): Error {
  const what = type === undefined ? `'${name}'` : `'${name}' of the type '${type}'`;
  return invalidParameter(name, `${what} is not supported by the vendor of the model \`${model}\`.`);
}

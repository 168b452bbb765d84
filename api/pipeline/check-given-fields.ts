import type { UnsupportedParameters } from '../../shared/accounts/api-keys.ts';
import type { FieldSupport } from '../../shared/vendors/vendor-description.ts';
import { invalidParameter } from './request-fields.ts';

/** A field of a request, and its support by the vendor of a route. */
export interface GivenField {
  /** The caller's name for it. */
  readonly name: string;
  /** The type at fault, of a field that has several. */
  readonly type?: string | undefined;
  readonly support: FieldSupport;
}

/**
 * Returns the names of ignored fields.
 * @param model for the message
 * @throws ApiError 400 that names a field whose absence would change the answer, unless those are to be dropped, too.
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

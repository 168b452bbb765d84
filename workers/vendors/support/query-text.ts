import { ApiError } from '../../../shared/errors.ts';
import { unsupportedField } from './unsupported-field.ts';

/** Servers generally accept URLs of 8 KB, and longer ones rarely. */
const maxCharacters = 8000;

/**
 * Fields as the query of a URL, without the question mark: a list becomes several fields of one name, and null or undefined are
 * left out. @throws ApiError 400 naming a field that is an object; also for fields that are too long together.
 */
export function queryText(fields: Readonly<Record<string, unknown>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    if (value === null || value === undefined) continue;
    for (const item of Array.isArray(value) ? value : [value]) {
      if (typeof item === 'object') throw unsupportedField(name, 'objects have no place in its query');
      query.append(name, String(item));
    }
  }
  const text = query.toString();
  if (text.length <= maxCharacters) return text;
  const message = `The fields of the request are too long: the model's vendor takes them in the address of a request, and has at most ${maxCharacters} characters for them.`;
  throw new ApiError('invalid_request_error', message);
}

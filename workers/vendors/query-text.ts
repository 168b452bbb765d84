import { unsupportedField } from './unsupported-field.ts';

/**
 * Fields as the query of a URL, without its question mark: a list becomes as many fields of one name, and what is null or
 * undefined is left out. @throws ApiError 400 that names a field which is an object.
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
  return query.toString();
}

import { ApiError } from '../../../shared/errors.ts';
import type { Form } from '../../pipeline/parsed-request.ts';

/** Type of a form field: a single value, any number of texts, or a file, which a text cannot replace. */
export type FieldKind = 'text' | 'integer' | 'number' | 'boolean' | 'list' | 'file';

const patterns = { integer: /^-?\d{1,9}$/, number: /^-?\d+(\.\d+)?(e[-+]?\d+)?$/i, boolean: /^(true|false)$/ };
const expectations = { integer: 'an integer', number: 'a number', boolean: "'true' or 'false'" };

/**
 * Converts a form's fields to their JSON form. Unknown fields may be the vendor's: texts, repeated at will. An empty field
 * counts as missing, like null in JSON, except the prompt: an empty prompt is an error that is reported.
 * @throws ApiError 400 that names the field at fault.
 */
export function readFormFields({ fields }: Form, kinds: Readonly<Record<string, FieldKind>>): Record<string, unknown> {
  return Object.fromEntries(
    [...fields].flatMap(([name, values]) => {
      // JSON bodies are refused for the same name.
      if (name === '__proto__') throw invalidField(name, 'it is not allowed');
      const given = name === 'prompt' ? values : values.filter((text) => text !== '');
      if (given.length === 0) return [];
      return [[name, readValues(name, given, Object.hasOwn(kinds, name) ? kinds[name] : undefined)]];
    }),
  );
}

function readValues(name: string, values: readonly string[], kind: FieldKind | undefined): unknown {
  const [text = '', another] = values;
  if (kind === 'file') throw invalidField(name, 'expected a file');
  if (kind === 'list') return values;
  if (another !== undefined && kind !== undefined) throw invalidField(name, 'it is given more than once');
  if (kind === undefined) return another === undefined ? text : values;
  if (kind === 'text') return text;
  if (!patterns[kind].test(text)) throw invalidField(name, `expected ${expectations[kind]}`);
  return kind === 'boolean' ? text === 'true' : Number(text);
}

/** The 400 for a field, or a file, of a form. */
export function invalidField(name: string, fault: string): ApiError {
  // The name is arbitrary text of the caller.
  const param = /^\w{1,64}$/.test(name) ? name : null;
  return new ApiError('invalid_request_error', `Invalid '${param ?? 'field'}': ${fault}.`, { param });
}

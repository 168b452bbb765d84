import type { ResponseFormat } from '../chat/chat-request.ts';
import { isAbsent, isObject, type JsonObject } from '../json-value.ts';
import { missingMember, requiredText, unsupportedValue, wrongType } from './request-members.ts';

const formatTypes = ['text', 'json_object', 'json_schema'] as const;
const verbosities = ['low', 'medium', 'high'] as const;

/**
 * Parses `text`: the required form of the answer.
 * @returns the form in chat's format, and `text` with its defaults filled in.
 * @throws WireError 400 naming the member, like `text.format.schema`.
 */
export function readTextFormat(text: JsonObject | undefined): { format: ResponseFormat; shown: object } {
  const verbosity = text?.verbosity ?? 'medium';
  if (!verbosities.some((known) => known === verbosity)) {
    throw unsupportedValue('text.verbosity', String(verbosity), verbosities);
  }
  const path = 'text.format';
  const sent = text?.format ?? { type: 'text' };
  if (!isObject(sent)) throw wrongType(path, 'an object');
  const type = requiredText(sent, 'type', path);
  if (type === 'text' || type === 'json_object') return { format: { type }, shown: { format: { type }, verbosity } };
  if (type !== 'json_schema') throw unsupportedValue(`${path}.type`, type, formatTypes);
  const name = requiredText(sent, 'name', path);
  const { schema, strict, description } = sent;
  if (!isObject(schema)) throw missingMember(`${path}.schema`);
  if (!isAbsent(strict) && typeof strict !== 'boolean') throw wrongType(`${path}.strict`, 'a boolean');
  const shown = { type, name, schema, strict: strict ?? false, ...(!isAbsent(description) && { description }) };
  return { format: { type, schema }, shown: { format: shown, verbosity } };
}

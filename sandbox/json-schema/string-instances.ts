import type { JsonObject } from '../json-value.ts';
import { stringFormats } from './formats.ts';
import { patternTexts } from './pattern-text.ts';
import { numberAt, SchemaError } from './schema.ts';

const MAXIMUM_LENGTH = 1_000_000;

/**
 * Candidate strings for a schema, most likely first.
 * @param name the property's name, which the text contains.
 * @param variant different variants give different texts.
 */
export function* stringInstances(schema: JsonObject, name: string, variant: number): Generator<string> {
  const minimum = numberAt(schema, 'minLength') ?? 0;
  const maximum = numberAt(schema, 'maxLength') ?? Number.POSITIVE_INFINITY;
  if (minimum > MAXIMUM_LENGTH) throw new SchemaError('a string has to be too long');
  const format = stringFormats.get(schema.format);
  if (format !== undefined) {
    const text = format.make('', variant);
    yield text;
    if (text.length < minimum) {
      // base64 grows by four characters per three: the filler is tried in more than one length.
      const missing = minimum - text.length;
      for (const length of [missing, Math.ceil(missing * 0.75)]) yield format.make('a'.repeat(length), variant);
    }
  }
  if (typeof schema.pattern === 'string') {
    for (const text of patternTexts(schema.pattern, variant, minimum)) {
      // A pattern of fixed characters can vary only after them, if it is open at the end.
      if (variant > 0) yield text + variant;
      yield text;
    }
  }
  yield fitLength(variant === 0 ? name : `${name} ${variant}`, minimum, maximum, variant);
}

function fitLength(text: string, minimum: number, maximum: number, variant: number): string {
  const characters = [...text];
  if (characters.length > maximum) {
    // The end distinguishes the variants.
    return variant === 0 ? characters.slice(0, maximum).join('') : shortVariant(maximum, variant);
  }
  if (characters.length >= minimum) return text;
  return text + '.'.repeat(minimum - characters.length);
}

const alphabet = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';

function shortVariant(length: number, variant: number): string {
  let text = '';
  for (let rest = variant; text.length < length; rest = Math.floor(rest / alphabet.length)) {
    text = alphabet[rest % alphabet.length] + text;
  }
  return text;
}

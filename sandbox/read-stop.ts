import { isAbsent } from './json-value.ts';
import { invalidParameter } from './wire-error.ts';

/**
 * Parses the texts of a `stop` parameter, before which an answer ends.
 * @throws WireError 400
 */
export function readStop(stop: unknown): readonly string[] {
  if (isAbsent(stop)) return [];
  const texts = typeof stop === 'string' ? [stop] : stop;
  if (!Array.isArray(texts) || texts.length > 4 || texts.some((text) => typeof text !== 'string')) {
    throw invalidParameter('stop', "'stop' must be a string or an array of at most 4 strings.");
  }
  return texts.filter((text) => text !== '');
}

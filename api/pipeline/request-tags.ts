import { storableText } from '../../shared/database/select-rows.ts';

/** OpenAI's limits of tags: pairs, and characters of a name and of a value. */
const maxPairs = 16;
const nameCharacters = 64;
const valueCharacters = 512;

/**
 * Returns a request's `metadata` as tags, by which its caller finds it in the usage: JSON text of an object of strings.
 * Omitted if missing or outside of OpenAI's limits: whether that is an error is up to the endpoint.
 */
export function requestTags(metadata: unknown): { readonly metadata?: string } {
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata)) return {};
  const pairs = Object.entries(metadata);
  const isTag = ([name, value]: [string, unknown]): boolean =>
    name.length <= nameCharacters && typeof value === 'string' && value.length <= valueCharacters;
  if (pairs.length === 0 || pairs.length > maxPairs || !pairs.every(isTag)) return {};
  return { metadata: JSON.stringify(Object.fromEntries(pairs.map((pair) => pair.map(storableText)))) };
}

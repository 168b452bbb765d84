import { storableText } from '../../shared/database/select-rows.ts';

/** What OpenAI takes of tags: pairs, and characters of a name and of a value. */
const maxPairs = 16;
const nameCharacters = 64;
const valueCharacters = 512;

/**
 * A request's `metadata` as tags by which its caller finds it in the usage again: JSON text of an object of strings. Left
 * out where there are none, and where it is not what OpenAI takes: whether that is refused is for the endpoint to say.
 */
export function requestTags(metadata: unknown): { readonly metadata?: string } {
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata)) return {};
  const pairs = Object.entries(metadata);
  const isTag = ([name, value]: [string, unknown]): boolean =>
    name.length <= nameCharacters && typeof value === 'string' && value.length <= valueCharacters;
  if (pairs.length === 0 || pairs.length > maxPairs || !pairs.every(isTag)) return {};
  return { metadata: JSON.stringify(Object.fromEntries(pairs.map((pair) => pair.map(storableText)))) };
}

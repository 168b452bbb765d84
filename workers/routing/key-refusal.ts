import type { ApiError } from '../../shared/errors.ts';
import { withoutKeys, withoutWordsOf } from '../../shared/runtime/redact.ts';

/** A vendor's sentence is cut after so many characters. */
const maxCharacters = 300;

/**
 * What a vendor said that refused the operator's key, for operators: on one line, without keys and without what it repeats of a
 * request; null where it said nothing, or the request is too long to tell.
 */
export function refusalSentence({ vendorSentence }: Pick<ApiError, 'vendorSentence'>, request = '{}'): string | null {
  if (vendorSentence === null) return null;
  const words = withoutWordsOf(vendorSentence.slice(0, 2 * maxCharacters), request);
  return words === undefined ? null : withoutKeys(words).replaceAll(/\s+/g, ' ').slice(0, maxCharacters);
}

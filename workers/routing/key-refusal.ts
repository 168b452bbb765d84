import type { ApiError } from '../../shared/errors.ts';
import { withoutKeys, withoutWordsOf } from '../../shared/runtime/redact.ts';
import { type RequestBody, requestText } from '../vendors/request-body.ts';

/** Length to which a vendor's message is truncated. */
const maxCharacters = 300;

/**
 * A vendor's message about refusing the operator's key, for operators: on one line, without keys and without quotes of the
 * request; null if there was none, or the request is too long to compare.
 */
export function refusalSentence(
  { vendorSentence }: Pick<ApiError, 'vendorSentence'>,
  request: RequestBody = '{}',
): string | null {
  if (vendorSentence === null) return null;
  const text = withoutWordsOf(vendorSentence.slice(0, 2 * maxCharacters), requestText(request));
  return text === undefined ? null : withoutKeys(text).replaceAll(/\s+/g, ' ').slice(0, maxCharacters);
}

import { ApiError } from '../../../shared/errors.ts';

/** An object of parsed JSON; its values are unknown until they are checked. */
export type JsonObject = Record<string, unknown>;

/** Whether JSON is an object: neither null nor a list. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether JSON is a text that is not empty. */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

/**
 * Objects and lists that JSON of any length may have, and characters for each where there are more: log probabilities have 30. Each takes
 * dozens of bytes and, where they are nested, as much time as hundreds of characters.
 */
const freeBrackets = 1_000_000;
const charactersPerBracket = 16;

/** Whether a text would take many times its length as JSON: 64 MiB of `{},` are 2 GB. */
function isMostlyBrackets(text: string): boolean {
  const max = Math.max(freeBrackets, text.length / charactersPerBracket);
  if (text.length <= max) return false;
  let brackets = 0;
  for (const bracket of '[{') {
    for (let at = text.indexOf(bracket); at >= 0; at = text.indexOf(bracket, at + 1)) {
      if (++brackets > max) return true;
    }
  }
  return false;
}

/**
 * Parses a vendor's answer; null: it had none.
 * @param parse `parseExact` for answers whose integers must keep their digits
 * @throws ApiError for anything but a JSON object, and for one of very many values.
 */
export function parseObject(text: string | null, parse: (json: string) => unknown = JSON.parse): JsonObject {
  if (text !== null && isMostlyBrackets(text)) {
    throw new ApiError('server_error', "The model's vendor answered with JSON of too many values.");
  }
  let answer: unknown;
  try {
    answer = parse(text ?? '');
  } catch {
    throw new ApiError('server_error', "The model's vendor answered with malformed JSON.");
  }
  if (!isObject(answer)) {
    throw new ApiError('server_error', "The model's vendor answered with JSON of an unknown shape.");
  }
  return answer;
}

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
 * Parses a vendor's answer; null: it had none.
 * @param parse `parseExact` for answers whose integers must keep their digits
 * @throws ApiError for anything but a JSON object.
 */
export function parseObject(text: string | null, parse: (json: string) => unknown = JSON.parse): JsonObject {
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

import { isObject, type JsonObject } from './json-value.ts';
import { WireError } from './wire-error.ts';

/**
 * Parses a request's body as an object.
 * @throws WireError 400
 */
export function parseBody(text: string): JsonObject {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new WireError(400, 'We could not parse the JSON body of your request.');
  }
  if (!isObject(body)) throw new WireError(400, 'The body of the request must be a JSON object.');
  return body;
}

/** An object of parsed JSON; its values are unknown until they are checked. */
export type JsonObject = Record<string, unknown>;

/** Whether JSON is an object: not null, no list. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

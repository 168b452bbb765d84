/** An object out of parsed JSON; its values are unknown until they are checked. */
export type JsonObject = Record<string, unknown>;

/** True for a JSON object: not null, not an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** True for a member that is missing or null: OpenAI takes both for "not given". */
export function isAbsent(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}

/** A parsed JSON object; its values are unknown until validated. */
export type JsonObject = Record<string, unknown>;

/** True for a JSON object: not null, not an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** True for a member that is missing or null: OpenAI treats both as not given. */
export function isAbsent(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}

import type { JsonObject } from './json-object.ts';

/** The delta that begins a tool call. @param index of the call among all calls @param written the arguments so far */
export function beginCall(index: number, id: unknown, name: unknown, written = ''): JsonObject {
  return { tool_calls: [{ index, id, type: 'function', function: { name, arguments: written } }] };
}

/** The delta that adds to a tool call's arguments. */
export function growCall(index: number, written: string): JsonObject {
  return { tool_calls: [{ index, function: { arguments: written } }] };
}

/** A chat message as a single delta. */
export function toDelta(message: JsonObject): JsonObject {
  if (!Array.isArray(message.tool_calls)) return message;
  return { ...message, tool_calls: message.tool_calls.map((call, index) => ({ index, ...call })) };
}

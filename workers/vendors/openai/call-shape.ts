import { isObject, isText, type JsonObject } from '../support/json-object.ts';

/** The state of a tool call in a streamed answer. */
export interface GrowingCall {
  readonly id: unknown;
  /** Its index at the vendor, which may give the same to several calls. */
  readonly given: unknown;
  /** Whether its arguments are still to come. */
  needsArguments: boolean;
}

/**
 * The index of a call among those of its choice, which older answers of Mistral omit. Gemini's endpoint for OpenAI's clients has
 * given the same to parallel calls: with another id and a name, another call begins.
 */
export function callIndex({ index, id, function: body }: JsonObject, calls: ReadonlyMap<number, GrowingCall>): number {
  const isNumbered = typeof index === 'number';
  const candidates = [...calls].filter(([, { given }]) => !isNumbered || given === index);
  const [same] = candidates.find(([, call]) => isText(id) && call.id === id) ?? [];
  if (same !== undefined) return same;
  const [last] = candidates.at(-1) ?? [];
  if (last === undefined) return isNumbered && !calls.has(index) ? index : nextIndex(calls);
  const isNamed = isObject(body) && isText(body.name);
  const isNew = isNumbered ? isText(id) && isNamed : isText(id) || isNamed;
  return isNew ? nextIndex(calls) : last;
}

function nextIndex(calls: ReadonlyMap<number, GrowingCall>): number {
  return Math.max(-1, ...calls.keys()) + 1;
}

/** A call's function with its arguments as text, whatever their form at the vendor. */
export function shapeArguments(body: JsonObject): JsonObject {
  const { arguments: written } = body;
  if (typeof written !== 'string') body.arguments = isObject(written) ? JSON.stringify(written) : '';
  return body;
}

/** A later piece of a call: fields of the first piece are kept, and an empty text adds nothing. */
export function shapePiece(piece: JsonObject, { id }: GrowingCall): void {
  if (piece.id !== undefined && piece.id !== id) piece.id = undefined;
  if (piece.type === '') piece.type = undefined;
  if (!isObject(piece.function)) return;
  if (piece.function.name === '' || piece.function.name === null) piece.function.name = undefined;
  if (piece.function.arguments !== undefined) shapeArguments(piece.function);
}

import { isObject, isText, type JsonObject } from '../support/json-object.ts';

/** The state of a tool call in a streamed answer. */
export interface GrowingCall {
  readonly id: unknown;
  /** Whether its arguments are still to come. */
  needsArguments: boolean;
}

/** The index of a call among those of its choice, which older answers of Mistral omit. */
export function callIndex({ index, id, function: body }: JsonObject, calls: ReadonlyMap<number, GrowingCall>): number {
  if (typeof index === 'number') return index;
  for (const [position, call] of calls) if (isText(id) && call.id === id) return position;
  const isNew = isText(id) || (isObject(body) && isText(body.name));
  return isNew ? calls.size : Math.max(0, calls.size - 1);
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

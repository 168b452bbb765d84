import { isObject, isText, type JsonObject } from '../support/json-object.ts';

/** What a streamed answer has said of one of its tool calls. */
export interface GrowingCall {
  readonly id: unknown;
  /** Whether its arguments are still to come. */
  needsArguments: boolean;
}

/** The place of a call among those of its choice, which older answers of Mistral do not tell. */
export function callPlace({ index, id, function: body }: JsonObject, calls: ReadonlyMap<number, GrowingCall>): number {
  if (typeof index === 'number') return index;
  for (const [place, call] of calls) if (isText(id) && call.id === id) return place;
  const isNew = isText(id) || (isObject(body) && isText(body.name));
  return isNew ? calls.size : Math.max(0, calls.size - 1);
}

/** A call's function with its arguments as text, whichever way the vendor tells them. */
export function shapeArguments(body: JsonObject): JsonObject {
  const { arguments: written } = body;
  if (typeof written !== 'string') body.arguments = isObject(written) ? JSON.stringify(written) : '';
  return body;
}

/** A later piece of a call: what was said of it at first stands, and an empty text says nothing. */
export function shapePiece(piece: JsonObject, { id }: GrowingCall): void {
  if (piece.id !== undefined && piece.id !== id) piece.id = undefined;
  if (piece.type === '') piece.type = undefined;
  if (!isObject(piece.function)) return;
  if (piece.function.name === '' || piece.function.name === null) piece.function.name = undefined;
  if (piece.function.arguments !== undefined) shapeArguments(piece.function);
}

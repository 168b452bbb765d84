import { randomUUID } from 'node:crypto';
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
function callIndex({ index, id, function: body }: JsonObject, calls: ReadonlyMap<number, GrowingCall>): number {
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
function shapeArguments(body: JsonObject): JsonObject {
  const { arguments: written } = body;
  if (typeof written !== 'string') body.arguments = isObject(written) ? JSON.stringify(written) : '';
  return body;
}

/** A later piece of a call: fields of the first piece are kept, and an empty text adds nothing. */
function shapePiece(piece: JsonObject, { id }: GrowingCall): void {
  if (piece.id !== undefined && piece.id !== id) piece.id = undefined;
  if (piece.type === '') piece.type = undefined;
  if (!isObject(piece.function)) return;
  if (piece.function.name === '' || piece.function.name === null) piece.function.name = undefined;
  if (piece.function.arguments !== undefined) shapeArguments(piece.function);
}

/** Completes the fields that only the first piece of a call, or a whole call, has. */
export function beginCall(call: JsonObject): void {
  if (!isText(call.id)) call.id = `call_${randomUUID().replaceAll('-', '')}`;
  if (!isText(call.type)) call.type = isObject(call.custom) && !isObject(call.function) ? 'custom' : 'function';
  if (call.type === 'function') call.function = shapeArguments(isObject(call.function) ? call.function : {});
}

/** Completes the pieces of calls in a delta, in place, and keeps what is known of each call. */
export function shapePieces(pieces: readonly unknown[], calls: Map<number, GrowingCall>): void {
  for (const piece of pieces as JsonObject[]) {
    const index = callIndex(piece, calls);
    const given = piece.index ?? index;
    piece.index = index;
    const known = calls.get(index);
    if (known === undefined) beginCall(piece);
    else shapePiece(piece, known);
    const call = known ?? { id: piece.id, given, needsArguments: piece.type === 'function' };
    const { arguments: written } = isObject(piece.function) ? piece.function : {};
    if (isText(written)) call.needsArguments = false;
    calls.set(index, call);
  }
}

/** Missing arguments become empty ones, because clients parse them; those of a truncated call are unknown. */
export function endCalls(delta: JsonObject, calls: ReadonlyMap<number, GrowingCall>, reason: string): void {
  for (const [index, call] of calls) {
    if (!call.needsArguments || reason === 'length') continue;
    call.needsArguments = false;
    const pieces: unknown[] = Array.isArray(delta.tool_calls) ? delta.tool_calls : [];
    const firstPiece = pieces.find((piece) => isObject(piece) && piece.index === index);
    if (isObject(firstPiece))
      firstPiece.function = { ...(isObject(firstPiece.function) && firstPiece.function), arguments: '{}' };
    else delta.tool_calls = [...pieces, { index, function: { arguments: '{}' } }];
  }
}

/** Leaves out the pieces of all calls but the first of a choice. */
export function keepFirstCall(delta: JsonObject, calls: ReadonlyMap<number, GrowingCall>): void {
  if (!Array.isArray(delta.tool_calls)) return;
  const [first] = calls.keys();
  const kept = delta.tool_calls.filter(({ index }) => index === first);
  delta.tool_calls = kept.length === 0 ? undefined : kept;
}

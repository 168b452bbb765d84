import { randomUUID } from 'node:crypto';
import { isObject, isText, type JsonObject } from '../support/json-object.ts';

/** The state of a tool call in a streamed answer. */
interface GrowingCall {
  readonly index: number;
  readonly id: unknown;
}

/** Calls that a piece may be of: the last one, and all by their ids. */
interface Candidates {
  last: GrowingCall;
  readonly byId: Map<unknown, GrowingCall>;
}

/** The calls of one choice of a streamed answer. Each is found at once, since one event may hold a hundred thousand of their pieces. */
export class GrowingCalls {
  readonly #calls = new Map<number, GrowingCall>();
  /** Those whose arguments are still to come. */
  readonly #withoutArguments = new Set<GrowingCall>();
  #all: Candidates | undefined;
  /** By the index at the vendor, which may give the same to several calls. */
  readonly #byGiven = new Map<unknown, Candidates>();
  #maxIndex = -1;

  get size(): number {
    return this.#calls.size;
  }

  get firstIndex(): number | undefined {
    return this.#calls.keys().next().value;
  }

  /** Returns the calls whose arguments are still to come, and takes them for told. */
  takeWithoutArguments(): GrowingCall[] {
    const open = [...this.#withoutArguments];
    this.#withoutArguments.clear();
    return open;
  }

  /** Arguments of a call have come. */
  noteArguments(call: GrowingCall): void {
    this.#withoutArguments.delete(call);
  }

  /**
   * The call that a piece is of; undefined if another one begins. Older answers of Mistral omit the index. Gemini's endpoint for
   * OpenAI's clients has given the same to parallel calls: with another id and a name, another call begins.
   */
  find({ index, id, function: body }: JsonObject): GrowingCall | undefined {
    const isNumbered = typeof index === 'number';
    const candidates = isNumbered ? this.#byGiven.get(index) : this.#all;
    if (candidates === undefined) return undefined;
    const same = isText(id) ? candidates.byId.get(id) : undefined;
    if (same !== undefined) return same;
    const isNamed = isObject(body) && isText(body.name);
    const isNew = isNumbered ? isText(id) && isNamed : isText(id) || isNamed;
    return isNew ? undefined : candidates.last;
  }

  /** The index of the call that begins with a piece. */
  indexOfNext({ index }: JsonObject): number {
    return typeof index === 'number' && !this.#calls.has(index) ? index : this.#maxIndex + 1;
  }

  /** @param given its index at the vendor @param needsArguments whether they are still to come */
  add(call: GrowingCall, given: unknown, needsArguments: boolean): void {
    this.#calls.set(call.index, call);
    if (needsArguments) this.#withoutArguments.add(call);
    this.#maxIndex = Math.max(this.#maxIndex, call.index);
    this.#all = withCall(this.#all, call);
    this.#byGiven.set(given, withCall(this.#byGiven.get(given), call));
  }
}

function withCall(candidates: Candidates | undefined, call: GrowingCall): Candidates {
  if (candidates === undefined) return { last: call, byId: new Map([[call.id, call]]) };
  candidates.last = call;
  if (!candidates.byId.has(call.id)) candidates.byId.set(call.id, call);
  return candidates;
}

/** A call's function with its arguments as text, whatever their form at the vendor. */
function shapeArguments(body: JsonObject): JsonObject {
  const { arguments: written } = body;
  if (typeof written !== 'string') body.arguments = isObject(written) ? JSON.stringify(written) : '';
  return body;
}

/** A later piece of a call: fields of the first piece are kept, and an empty text adds nothing. */
function shapePiece(piece: JsonObject, { id }: Pick<GrowingCall, 'id'>): void {
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
export function shapePieces(pieces: readonly unknown[], calls: GrowingCalls): void {
  for (const piece of pieces as JsonObject[]) {
    const known = calls.find(piece);
    const index = known?.index ?? calls.indexOfNext(piece);
    const given = piece.index ?? index;
    piece.index = index;
    if (known === undefined) beginCall(piece);
    else shapePiece(piece, known);
    const { arguments: written } = isObject(piece.function) ? piece.function : {};
    if (known === undefined) calls.add({ index, id: piece.id }, given, piece.type === 'function' && !isText(written));
    else if (isText(written)) calls.noteArguments(known);
  }
}

/** Missing arguments become empty ones, because clients parse them; those of a truncated call are unknown. */
export function endCalls(delta: JsonObject, calls: GrowingCalls, reason: string): void {
  const open = reason === 'length' ? [] : calls.takeWithoutArguments();
  if (open.length === 0) return;
  const pieces: unknown[] = Array.isArray(delta.tool_calls) ? [...delta.tool_calls] : [];
  const firstPieces = new Map<unknown, JsonObject>();
  for (const piece of pieces) if (isObject(piece) && !firstPieces.has(piece.index)) firstPieces.set(piece.index, piece);
  for (const { index } of open) {
    const piece = firstPieces.get(index);
    if (piece === undefined) pieces.push({ index, function: { arguments: '{}' } });
    else piece.function = { ...(isObject(piece.function) && piece.function), arguments: '{}' };
  }
  delta.tool_calls = pieces;
}

/** Leaves out the pieces of all calls but the first of a choice. */
export function keepFirstCall(delta: JsonObject, calls: GrowingCalls): void {
  if (!Array.isArray(delta.tool_calls)) return;
  const kept = delta.tool_calls.filter(({ index }) => index === calls.firstIndex);
  delta.tool_calls = kept.length === 0 ? undefined : kept;
}

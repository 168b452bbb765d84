import { ApiError } from '../../../shared/errors.ts';
import { isObject, isText, type JsonObject } from '../support/json-object.ts';

/** A call, and what its part is signed with. */
export interface WholeCall {
  readonly call: JsonObject;
  readonly signature: unknown;
}

/** The most characters that are kept of a call's arguments, their paths included. */
const maxCharacters = 4 * 1024 * 1024;

/**
 * A call whose arguments come in pieces (https://ai.google.dev/api/caching#FunctionCall): a part with its name, parts with `partialArgs`, each of which
 * says at which JSON path a value stands, and a part that does not say `willContinue`. The client is told of the whole call.
 */
export class PartialCall {
  #call: { id: unknown; name: unknown; signature: unknown; args: JsonObject } | undefined;
  #characters = 0;

  /** Whether a call has begun that has not ended. */
  get isOpen(): boolean {
    return this.#call !== undefined;
  }

  /** Takes the next part with a call. @returns the call, once it is whole @throws ApiError for one that makes no sense */
  take({ functionCall, thoughtSignature: signature }: JsonObject): WholeCall | undefined {
    const { id, name, args, partialArgs: pieces, willContinue } = functionCall as JsonObject;
    if (this.#call === undefined) {
      if (!isText(name)) throw unusable();
      if (willContinue !== true && !Array.isArray(pieces)) return { call: { id, name, args }, signature };
      this.#call = { id, name, signature, args: object() };
    }
    const open = this.#call;
    open.signature ??= signature;
    if (isObject(args)) Object.assign(open.args, args);
    for (const piece of Array.isArray(pieces) ? pieces : []) this.#write(open.args, piece);
    if (willContinue === true) return undefined;
    this.#call = undefined;
    this.#characters = 0;
    return { call: open, signature: open.signature };
  }

  #write(args: JsonObject, piece: unknown): void {
    if (!isObject(piece)) throw unusable();
    const path = readPath(piece.jsonPath);
    const value = readValue(piece);
    this.#characters += String(piece.jsonPath).length + (isText(value) ? value.length : 1);
    if (this.#characters > maxCharacters) throw unusable();
    let place: JsonObject = args;
    for (const [at, name] of path.slice(0, -1).entries()) {
      assertPlace(place, name);
      const next = place[name] ?? (typeof path[at + 1] === 'number' ? [] : object());
      if (typeof next !== 'object' || next === null) throw unusable();
      place[name] = next;
      place = next as JsonObject;
    }
    const last = path.at(-1) as string | number;
    assertPlace(place, last);
    const before = place[last];
    // A text may come in pieces, too.
    place[last] = typeof before === 'string' && typeof value === 'string' ? before + value : value;
  }
}

/** Without a prototype: the names in it are the model's. */
function object(): JsonObject {
  return Object.create(null) as JsonObject;
}

/** Lists grow by one, and have no names; no name reaches a prototype. */
function assertPlace(place: JsonObject, name: string | number): void {
  const fits = Array.isArray(place) ? typeof name === 'number' && name <= place.length : typeof name === 'string';
  if (!fits || name === '__proto__') throw unusable();
}

function readValue(piece: JsonObject): unknown {
  for (const name of ['stringValue', 'numberValue', 'boolValue']) if (piece[name] !== undefined) return piece[name];
  return null;
}

const segment = /\.([^.[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]/y;

/** The names and places of `$.a.b[0]['c']`. */
function readPath(path: unknown): (string | number)[] {
  if (typeof path !== 'string' || !path.startsWith('$')) throw unusable();
  const names: (string | number)[] = [];
  segment.lastIndex = 1;
  while (segment.lastIndex < path.length) {
    const found = segment.exec(path);
    if (found === null) throw unusable();
    const [, plain, place, single, double] = found;
    names.push(place === undefined ? (plain ?? unescaped(single ?? double ?? '')) : Number(place));
  }
  if (names.length === 0) throw unusable();
  return names;
}

function unescaped(text: string): string {
  return text.replaceAll(/\\(.)/g, '$1');
}

function unusable(): ApiError {
  return new ApiError('server_error', "The model's vendor answered with a call of an unknown shape.");
}

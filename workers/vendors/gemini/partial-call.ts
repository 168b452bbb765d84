import { ApiError } from '../../../shared/errors.ts';
import { isObject, isText, type JsonObject } from '../support/json-object.ts';

/** A call, and the signature of its part. */
export interface WholeCall {
  readonly call: JsonObject;
  readonly signature: unknown;
}

/** Maximum characters of a call's arguments, including their paths. */
const maxCharacters = 4 * 1024 * 1024;

/**
 * A call whose arguments come in pieces (https://ai.google.dev/api/caching#FunctionCall): a part with its name, parts with
 * `partialArgs`, each with the JSON path of a value, and a part without `willContinue`. The client receives the whole call.
 */
export class PartialCall {
  #call: { id: unknown; name: unknown; signature: unknown; args: JsonObject } | undefined;
  #characters = 0;

  /** Whether a call has started that has not ended. */
  get isOpen(): boolean {
    return this.#call !== undefined;
  }

  /** Takes the next part with a call. @returns the call, once it is complete @throws ApiError for a malformed one */
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
    let target: JsonObject = args;
    for (const [at, name] of path.slice(0, -1).entries()) {
      assertFits(target, name);
      const next = target[name] ?? (typeof path[at + 1] === 'number' ? [] : object());
      if (typeof next !== 'object' || next === null) throw unusable();
      target[name] = next;
      target = next as JsonObject;
    }
    const last = path.at(-1) as string | number;
    assertFits(target, last);
    const before = target[last];
    // A text may come in pieces, too.
    target[last] = typeof before === 'string' && typeof value === 'string' ? before + value : value;
  }
}

/** Without a prototype: the model chooses the names in it. */
function object(): JsonObject {
  return Object.create(null) as JsonObject;
}

/** Lists grow by one, and have no names; no name reaches a prototype. */
function assertFits(target: JsonObject, name: string | number): void {
  const fits = Array.isArray(target) ? typeof name === 'number' && name <= target.length : typeof name === 'string';
  if (!fits || name === '__proto__') throw unusable();
}

function readValue(piece: JsonObject): unknown {
  for (const name of ['stringValue', 'numberValue', 'boolValue']) if (piece[name] !== undefined) return piece[name];
  return null;
}

const segment = /\.([^.[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]/y;

/** The names and indices of `$.a.b[0]['c']`. */
function readPath(path: unknown): (string | number)[] {
  if (typeof path !== 'string' || !path.startsWith('$')) throw unusable();
  const names: (string | number)[] = [];
  segment.lastIndex = 1;
  while (segment.lastIndex < path.length) {
    const found = segment.exec(path);
    if (found === null) throw unusable();
    const [, plain, position, single, double] = found;
    names.push(position === undefined ? (plain ?? unescaped(single ?? double ?? '')) : Number(position));
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

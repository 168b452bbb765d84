import { isMediaLink, linkMark, linkPath, mediaLinks } from '../../../shared/blobs/media-links.ts';
import { ApiError } from '../../../shared/errors.ts';
import { type RequestText, requestBytes } from '../../pipeline/request-text.ts';
import { mistakePosition } from './json-mistake.ts';

/** Limits of a body's structure, whatever its size in bytes. */
interface JsonLimits {
  /** Maximum nesting of objects and arrays, including the outermost. */
  readonly nesting: number;
  /** Maximum number of commas and opening brackets, which is about the number of values. */
  readonly values: number;
}

/** Where a field of the outermost object stands. */
interface JsonMember {
  /** The key in its quotes, as it is written: bytes from and to. */
  readonly keyFrom: number;
  readonly keyTo: number;
  /** The value's first byte and the one behind it, with the spaces around it. */
  readonly from: number;
  readonly to: number;
  /** Number of keys in the value, at any depth, repeated ones included. */
  readonly keys: number;
  /** Bytes outside of texts that mean nothing: spaces and line ends. */
  readonly spaces: number;
}

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const backslash = 0x5c;
const space = 0x20;
// `[` and `{`, `]` and `}` differ in this bit only.
const braceBit = 0x20;
const opening = 0x7b;
const closing = 0x7d;

/**
 * Which limit JSON in UTF-8 exceeds, or undefined. Scans it once and parses nothing.
 * @param onMember called with each field of the outermost object; meaningless if the JSON is invalid
 */
export function exceededLimit(
  body: Uint8Array,
  limits: JsonLimits,
  onMember?: (member: JsonMember) => void,
): keyof JsonLimits | undefined {
  // Its `indexOf` is much faster than that of other arrays.
  const json = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  let depth = 0;
  let values = 0;
  let [keyFrom, keyTo, from, keys, spaces] = [0, 0, 0, 0, 0];
  const length = json.length;
  for (let at = 0; at < length; at++) {
    const byte = json[at] as number;
    if (byte === quote) {
      const start = at;
      at = endOfString(json, at);
      if (depth === 1 && from === 0) [keyFrom, keyTo] = [start, at + 1];
    } else if (byte === comma) {
      values++;
      if (depth === 1 && from > 0) {
        onMember?.({ keyFrom, keyTo, from, to: at, keys, spaces });
        from = 0;
      }
    } else if (byte === colon) {
      keys++;
      if (depth === 1 && from === 0) [from, keys, spaces] = [at + 1, 0, 0];
    } else if ((byte | braceBit) === opening) {
      depth++;
      values++;
      if (depth > limits.nesting) return 'nesting';
      if (values > limits.values) return 'values';
    } else if ((byte | braceBit) === closing) {
      depth--;
      if (depth === 0 && from > 0) {
        onMember?.({ keyFrom, keyTo, from, to: at, keys, spaces });
        from = 0;
      }
    } else if (byte <= space) {
      spaces++;
    }
  }
  return values > limits.values ? 'values' : undefined;
}

/** Texts longer than this are searched natively, which costs a call. */
const shortString = 48;

/** Index of the quote that ends the string at `start`, or beyond the end. */
function endOfString(json: Buffer, start: number): number {
  const { length } = json;
  let at = start + 1;
  for (;;) {
    const soon = Math.min(length, at + shortString);
    while (at < soon && json[at] !== quote) at += json[at] === backslash ? 2 : 1;
    // A backslash may have skipped the bound; what it escapes is no end.
    if (at >= length || (at < soon && json[at] === quote)) return at;
    const end = json.indexOf(quote, at);
    if (end < 0) return length;
    let backslashes = 0;
    while (end - backslashes > at && json[end - backslashes - 1] === backslash) backslashes++;
    if (backslashes % 2 === 0) return end;
    // Between two native searches so many bytes are read here: a text of nothing but escaped quotes costs no call for each.
    at = end + 1;
  }
}

/** A value's JSON text as its caller wrote it. */
interface RawJson {
  readonly bytes: Uint8Array;
  /** Number of keys in it, at any depth, repeated ones included. */
  readonly keys: number;
}

/** Shorter fields (bytes) are serialized again. */
const longField = 4096;

const raw = new WeakMap<object, RawJson>();

/**
 * Keeps the texts of a body's long fields, so that `rawJsonOf` can hand them on as they are: to serialize a prompt of 300 KB
 * again takes longer than to parse it. Texts with spaces around their values, or with characters escaped by number (`\u4e2d`),
 * are not kept: adapters search a request's text for its keys, and a request's length is what its cost is estimated by.
 */
function keepRawJson(value: Record<string, unknown>, body: Uint8Array, members: readonly JsonMember[]): void {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  // A repeated key has its last value, as in the parsed object.
  const last = new Map(members.map((member) => [keyOf(bytes, member), member]));
  for (const [key, { from, to, keys, spaces }] of last) {
    const length = to - from;
    const field = value[key];
    if (length < longField || spaces > 0 || typeof field !== 'object' || field === null) continue;
    const text = bytes.subarray(from, to);
    if (!text.includes('\\u')) raw.set(field, { bytes: text, keys });
  }
}

function keyOf(bytes: Buffer, { keyFrom, keyTo }: JsonMember): string {
  return JSON.parse(bytes.toString('utf8', keyFrom, keyTo)) as string;
}

/**
 * The JSON text of a value that `parseJson` has parsed, if it is kept and says the same as the value. It does not where a key
 * was repeated, of which checks saw the last only, or where a field was removed since: then the value has fewer keys. A value
 * must not have been changed otherwise.
 */
export function rawJsonOf(value: unknown): Uint8Array | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const kept = raw.get(value);
  return kept !== undefined && kept.keys === countKeys(value) ? kept.bytes : undefined;
}

/** Number of keys of an object and of everything within it. Its depth is bounded by `parseJson`. */
function countKeys(value: object): number {
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === 'object' && item !== null) count += countKeys(item);
    return count;
  }
  for (const key of Object.keys(value)) {
    count++;
    const item = (value as Record<string, unknown>)[key];
    if (typeof item === 'object' && item !== null) count += countKeys(item);
  }
  return count;
}

// 20 MiB of `{},` would be 7 million objects: a gigabyte and seconds. A long chat of 20 MiB has under a million values.
const limits: JsonLimits = { nesting: 64, values: 2_000_000 };

/** Maximum number of fields of the outermost object. Each one that is not known is checked for each route, by the event loop. */
const maxFields = 1000;

/** Of larger bodies (bytes) the texts of long fields are kept, see `keepRawJson`. */
const keptFrom = 64 * 1024;

const decoder = new TextDecoder('utf-8', { fatal: true });

/**
 * Parses a request's body, a JSON object in UTF-8 with or without a byte order mark.
 * @throws ApiError 400 for a body that is empty, not UTF-8, not JSON, not an object, nested deeper than 64, has more than
 * two million values or a thousand fields, or has keys of an object's prototype; the message quotes nothing of the body. Also 400 for a media
 * link that is not on the web, which it names.
 * @param read `parseExact` for bodies whose integers must keep their digits
 */
export function parseJson(body: Uint8Array, read: (json: string) => unknown = JSON.parse): Record<string, unknown> {
  if (body.byteLength === 0) throw unusable('it is empty, and a JSON object was expected');
  // Before parsing, because everything after it (checks, JSON.stringify, the vendor) recurses.
  const members: JsonMember[] | undefined = body.byteLength > keptFrom ? [] : undefined;
  const exceeded = exceededLimit(body, limits, members && ((member) => members.push(member)));
  if (exceeded === 'nesting') throw unusable(`it is nested deeper than ${limits.nesting} levels`);
  if (exceeded === 'values') throw unusable(`it holds more than ${limits.values} values`);
  const text = decode(body);
  const value = parse(text, read);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw unusable('a JSON object was expected');
  }
  if (Object.keys(value).length > maxFields) throw unusable(`it has more than ${maxFields} fields`);
  // Only a body that may contain such a key is walked: most cannot.
  if (mayHoldPrototypeKey(text) && holdsPrototypeKey(value)) {
    throw unusable("it has the key '__proto__' or 'constructor.prototype', which is not allowed");
  }
  if (linkMark.test(text) || mayEscapeLetters(text)) checkLinks(value);
  if (members !== undefined) keepRawJson(value as Record<string, unknown>, body, members);
  return value as Record<string, unknown>;
}

/** A vendor may fetch a link, so it must be on the web: `file:///etc/passwd` is on the vendor's own disk. */
function checkLinks(value: object): void {
  for (const link of mediaLinks(value)) {
    if (isMediaLink(link.url)) continue;
    const path = linkPath(link);
    const message = `Invalid '${path}': expected an http or https link, or a data URL.`;
    throw new ApiError('invalid_request_error', message, { param: path });
  }
}

function unusable(reason: string): ApiError {
  return new ApiError('invalid_request_error', `We could not parse the JSON body of your request: ${reason}.`);
}

// The errors of decoder and parser stay here: the parser's quotes the body.
function decode(body: Uint8Array): string {
  try {
    return decoder.decode(body);
  } catch {
    throw unusable('it is not valid UTF-8');
  }
}

function parse(text: string, read: (json: string) => unknown): unknown {
  try {
    return read(text);
  } catch {
    throw unusable(`it is not valid JSON ${mistakePosition(text)}`);
  }
}

const escapedLetter = /\\u00[567]/;

/** Whether a letter of those keys, or of the names of links (`_` to `u`), is escaped (\u005f to \u0075). */
function mayEscapeLetters(text: string): boolean {
  return text.includes('\\u00') && escapedLetter.test(text);
}

/**
 * Short texts that begin with a rare character are found many times faster than long ones: those are sought in steps that grow
 * with the mismatches, which common letters make small.
 */
function mayHoldPrototypeKey(text: string): boolean {
  return (
    text.includes('__proto__') || (text.includes('"const') && text.includes('"constructor"')) || mayEscapeLetters(text)
  );
}

function holdsPrototypeKey(value: object): boolean {
  if (Array.isArray(value)) return value.some((item) => isObject(item) && holdsPrototypeKey(item));
  for (const key of Object.keys(value)) {
    if (key === '__proto__') return true;
    const item = (value as Record<string, unknown>)[key];
    if (!isObject(item)) continue;
    if (key === 'constructor' && Object.hasOwn(item, 'prototype')) return true;
    if (holdsPrototypeKey(item)) return true;
  }
  return false;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** Serializes a request; long fields that are as their caller wrote them are taken from its body, not serialized again. */
export function requestText(request: object): RequestText {
  const long = new Map<string, Uint8Array>();
  for (const [key, value] of Object.entries(request)) {
    const raw = rawJsonOf(value);
    if (raw !== undefined) long.set(key, raw);
  }
  if (long.size === 0) return JSON.stringify(request);
  const parts: Uint8Array[] = [];
  let text = '{';
  for (const [key, value] of Object.entries(request)) {
    if (value === undefined) continue;
    text += `${text === '{' ? '' : ','}${JSON.stringify(key)}:`;
    const raw = long.get(key);
    if (raw === undefined) {
      text += JSON.stringify(value);
    } else {
      parts.push(Buffer.from(text), raw);
      text = '';
    }
  }
  return requestBytes([...parts, Buffer.from(`${text}}`)]);
}

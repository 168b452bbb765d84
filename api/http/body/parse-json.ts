import { isMediaLink, mayHoldLink, mediaLinks } from '../../../shared/blobs/media-links.ts';
import { ApiError } from '../../../shared/errors.ts';
import { mistakePosition } from './json-mistake.ts';

/** Limits of a body's structure, whatever its size in bytes. */
export interface JsonLimits {
  /** Maximum nesting of objects and arrays, including the outermost. */
  readonly nesting: number;
  /** Maximum number of commas and opening brackets, which is about the number of values. */
  readonly values: number;
}

// 20 MiB of `{},` would be 7 million objects: a gigabyte and seconds. A long chat of 20 MiB has under a million values.
const limits: JsonLimits = { nesting: 64, values: 2_000_000 };

const decoder = new TextDecoder('utf-8', { fatal: true });

/**
 * Parses a request's body, a JSON object in UTF-8 with or without a byte order mark.
 * @throws ApiError 400 for a body that is empty, not UTF-8, not JSON, not an object, nested deeper than 64, has more than
 * two million values, or has keys of an object's prototype; the message quotes nothing of the body. Also 400 for a media
 * link that is not on the web, which it names.
 */
export function parseJson(body: Uint8Array): Record<string, unknown> {
  if (body.byteLength === 0) throw unusable('it is empty, and a JSON object was expected');
  // Before parsing, because everything after it (checks, JSON.stringify, the vendor) recurses.
  const exceeded = exceededLimit(body, limits);
  if (exceeded === 'nesting') throw unusable(`it is nested deeper than ${limits.nesting} levels`);
  if (exceeded === 'values') throw unusable(`it holds more than ${limits.values} values`);
  const text = decode(body);
  const value = parse(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw unusable('a JSON object was expected');
  }
  // Only a body that may contain such a key is walked: most cannot.
  if (mayHoldPrototypeKey(text) && holdsPrototypeKey(value)) {
    throw unusable("it has the key '__proto__' or 'constructor.prototype', which is not allowed");
  }
  if (mayHoldLink(text) || escapedLetter.test(text)) checkLinks(value);
  return value as Record<string, unknown>;
}

/** A vendor may fetch a link, so it must be on the web: `file:///etc/passwd` is on the vendor's own disk. */
function checkLinks(value: object): void {
  for (const { url, path } of mediaLinks(value)) {
    if (isMediaLink(url)) continue;
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

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw unusable(`it is not valid JSON ${mistakePosition(text)}`);
  }
}

const quote = 0x22;
const comma = 0x2c;
const backslash = 0x5c;
// `[` and `{`, `]` and `}` differ in this bit only.
const braceBit = 0x20;
const opening = 0x7b;
const closing = 0x7d;

/** Which limit JSON in UTF-8 exceeds, or undefined. Scans every byte once and parses nothing. */
export function exceededLimit(json: Uint8Array, limits: JsonLimits): keyof JsonLimits | undefined {
  let depth = 0;
  let values = 0;
  const length = json.length;
  for (let at = 0; at < length; at++) {
    const byte = json[at] as number;
    if (byte === quote) {
      at = endOfString(json, at);
    } else if (byte === comma) {
      values++;
    } else if ((byte | braceBit) === opening) {
      depth++;
      values++;
      if (depth > limits.nesting) return 'nesting';
      if (values > limits.values) return 'values';
    } else if ((byte | braceBit) === closing) {
      depth--;
    }
  }
  return values > limits.values ? 'values' : undefined;
}

function endOfString(json: Uint8Array, start: number): number {
  let at = start + 1;
  while (at < json.length && json[at] !== quote) at += json[at] === backslash ? 2 : 1;
  return at;
}

// `_` to `u`, the letters of those keys and of the names of links, are \u005f to \u0075.
const escapedLetter = /\\u00[567]/;

function mayHoldPrototypeKey(text: string): boolean {
  return text.includes('"__proto__"') || text.includes('"constructor"') || escapedLetter.test(text);
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

import { isMediaLink, mayHoldLink, mediaLinks } from '../../../shared/blobs/media-links.ts';
import { ApiError } from '../../../shared/errors.ts';
import { mistakePosition } from './json-mistake.ts';
import { keepRawJson } from './raw-json.ts';
import { exceededLimit, type JsonLimits, type JsonMember } from './scan-json.ts';

// 20 MiB of `{},` would be 7 million objects: a gigabyte and seconds. A long chat of 20 MiB has under a million values.
const limits: JsonLimits = { nesting: 64, values: 2_000_000 };

/** Of larger bodies (bytes) the texts of long fields are kept, see `keepRawJson`. */
const keptFrom = 64 * 1024;

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
  const members: JsonMember[] | undefined = body.byteLength > keptFrom ? [] : undefined;
  const exceeded = exceededLimit(body, limits, members && ((member) => members.push(member)));
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
  if (members !== undefined) keepRawJson(value as Record<string, unknown>, body, members);
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

// `_` to `u`, the letters of those keys and of the names of links, are \u005f to \u0075.
const escapedLetter = /\\u00[567]/;

function mayHoldPrototypeKey(text: string): boolean {
  // Without its quotes it is found faster: an underscore is rarer.
  return text.includes('__proto__') || text.includes('"constructor"') || escapedLetter.test(text);
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

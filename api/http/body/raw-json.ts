import type { JsonMember } from './scan-json.ts';

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
export function keepRawJson(value: Record<string, unknown>, body: Uint8Array, members: readonly JsonMember[]): void {
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

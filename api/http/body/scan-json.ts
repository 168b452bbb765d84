/** Limits of a body's structure, whatever its size in bytes. */
export interface JsonLimits {
  /** Maximum nesting of objects and arrays, including the outermost. */
  readonly nesting: number;
  /** Maximum number of commas and opening brackets, which is about the number of values. */
  readonly values: number;
}

/** Where a field of the outermost object stands. */
export interface JsonMember {
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

/** The byte with which a string starts and ends. */
export const quote = 0x22;
const [openingBracket, closingBracket, colon, space] = [0x5b, 0x5d, 0x3a, 0x20];

/**
 * Takes the values of a key out of JSON in UTF-8 where they stand, so that megabytes need not be parsed. In the rest each is replaced
 * by its number.
 * @param read gets a string, with its quotes and up to the next one, or a flat list; undefined leaves it in its place, to be parsed. It
 * must refuse what is no whole value, as a string with an escaped quote
 */
export function takeValues<Value>(
  bytes: Buffer,
  key: string,
  read: (value: Buffer) => Value | undefined,
): { found: Value[]; rest: string } {
  // Quotes inside strings are escaped, so this and a colon are never text but a key.
  const quoted = Buffer.from(`"${key}"`);
  const found: Value[] = [];
  let rest = '';
  let from = 0;
  for (let at = bytes.indexOf(quoted); at >= 0; at = bytes.indexOf(quoted, at + quoted.length)) {
    const start = startOfValue(bytes, at + quoted.length);
    const end = endOfValue(bytes, start);
    const value = end === undefined ? undefined : read(bytes.subarray(start, end));
    if (end === undefined || value === undefined) continue;
    rest += `${bytes.toString('utf8', from, at)}"${key}":${found.push(value) - 1}`;
    from = end;
  }
  return { found, rest: rest + bytes.toString('utf8', from) };
}

/** Index of the first byte of the value whose key ends before `at`; -1 if it was no key. */
function startOfValue(bytes: Buffer, at: number): number {
  let [index, hasColon] = [at, false];
  for (; (bytes[index] as number) <= space || (!hasColon && bytes[index] === colon); index++) {
    hasColon ||= bytes[index] === colon;
  }
  return hasColon ? index : -1;
}

/** Index behind a list or a string that starts at `start`; undefined for anything else. */
function endOfValue(bytes: Buffer, start: number): number | undefined {
  const first = start < 0 ? undefined : bytes[start];
  if (first !== quote && first !== openingBracket) return undefined;
  const next = bytes.indexOf(quote, start + 1);
  if (first === quote) return next < 0 ? undefined : next + 1;
  // Of numbers alone: beyond the next quote it is none, and to look for its end there, at each key, would take hours.
  const last = bytes.subarray(0, next < 0 ? bytes.length : next).indexOf(closingBracket, start + 1);
  return last < 0 ? undefined : last + 1;
}

/**
 * The sandbox's tokenizer: a token is up to 16 letters and digits, or one punctuation mark, with the preceding white space.
 * Everything outside ASCII counts as a letter. Joining the tokens of a text restores the text.
 */
const MAXIMUM_LENGTH = 16;

const SPACE = 1;
const WORD = 2;
const kinds = new Uint8Array(128);
for (const character of ' \t\n\r\v\f') kinds[character.charCodeAt(0)] = SPACE;
for (const character of '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_') {
  kinds[character.charCodeAt(0)] = WORD;
}

function kindAt(text: string, index: number): number {
  const code = text.charCodeAt(index);
  return code < 128 ? (kinds[code] as number) : WORD;
}

/** The end of the token that starts at `start`; more than `start` for every `start` inside the text. */
export function tokenEnd(text: string, start: number): number {
  let index = start;
  let limit = Math.min(text.length, start + MAXIMUM_LENGTH);
  while (index < limit && kindAt(text, index) === SPACE) index += 1;
  if (index === limit) return index;
  if (kindAt(text, index) !== WORD) return index + 1;
  limit = Math.min(text.length, index + MAXIMUM_LENGTH);
  while (index < limit && kindAt(text, index) === WORD) index += 1;
  // A token must consist of whole characters: half a surrogate pair could not be encoded as UTF-8.
  const low = text.charCodeAt(index);
  if (low >= 0xdc00 && low <= 0xdfff && isHighSurrogate(text.charCodeAt(index - 1))) index += 1;
  return index;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

/** The tokens of a text, in order. */
export function splitTokens(text: string): string[] {
  const tokens: string[] = [];
  for (let start = 0; start < text.length; ) {
    const end = tokenEnd(text, start);
    tokens.push(text.slice(start, end));
    start = end;
  }
  return tokens;
}

/** The start of a text, at most `length` UTF-16 units, never ending inside a surrogate pair. */
export function textStart(text: string, length: number): string {
  if (text.length <= length) return text;
  return text.slice(0, isHighSurrogate(text.charCodeAt(length - 1)) ? length - 1 : length);
}

import { randomUUID } from 'node:crypto';

/** Precedes the digits of a kept integer; unknown outside of this process, so that no text passes for one. */
const mark = `integer:${randomUUID()}:`;
const kept = new RegExp(`"${mark}(-?\\d+)"`, 'g');

const quote = 0x22;
const backslash = 0x5c;
/** Whether JSON may have integers that parsing rounds: fewer digits are always exact. */
export const mayBeInexact = /\d{16}/;
const longInteger = /^-?\d{16,}$/;
const number = /[-+.\deE]+/y;
const numberStart = /[-\d]/;

/**
 * Parses JSON whose integers beyond 2^53 keep their digits: ids of 64 bits, say, in the arguments of a tool. Each is a text that
 * only `stringifyExact` reads. @throws SyntaxError
 */
export function parseExact(json: string): unknown {
  return JSON.parse(mayBeInexact.test(json) ? withMarks(json) : json);
}

/** Writes JSON in which values of `parseExact` have their digits. */
export function stringifyExact(value: unknown): string {
  const json = JSON.stringify(value);
  return json.includes(mark) ? json.replace(kept, '$1') : json;
}

function withMarks(json: string): string {
  let [marked, from] = ['', 0];
  for (let at = 0; at < json.length; at++) {
    if (json.charCodeAt(at) === quote) {
      at = endOfText(json, at);
    } else if (numberStart.test(json[at] as string)) {
      number.lastIndex = at;
      const [token = ''] = number.exec(json) ?? [];
      if (longInteger.test(token) && !Number.isSafeInteger(Number(token))) {
        marked += `${json.slice(from, at)}"${mark}${token}"`;
        from = at + token.length;
      }
      at += token.length - 1;
    }
  }
  return marked + json.slice(from);
}

/** Index of the quote that ends the text that starts at `start`, or beyond the end. */
function endOfText(json: string, start: number): number {
  for (let end = json.indexOf('"', start + 1); end >= 0; end = json.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (json.charCodeAt(end - 1 - backslashes) === backslash) backslashes++;
    if (backslashes % 2 === 0) return end;
  }
  return json.length;
}

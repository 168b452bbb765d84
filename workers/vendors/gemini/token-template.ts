import { isPlainString } from '../support/delta-stream.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';

const textKey = /"text":\s*/;
const countsKey = /"usageMetadata":\s*/;

/** The variable parts of an event that matches a template. */
export interface TokenOfEvent {
  /** The text, as a JSON string. */
  readonly token: string;
  readonly counts: JsonObject;
}

/**
 * The events of one stream usually differ in two values: the text, and the counts. A template is such an event around these, so
 * that only the counts of a matching event are parsed, which are a third of it.
 */
export class GeminiTokenTemplate {
  private readonly before: string;
  private readonly between: string;
  private readonly after: string;

  private constructor(before: string, between: string, after: string) {
    this.before = before;
    this.between = between;
    this.after = after;
  }

  /**
   * @param data The text of an event, known to be whole JSON of one candidate that adds one text and nothing else.
   * @returns undefined if the positions of both values are not certain.
   */
  static from(data: string): GeminiTokenTemplate | undefined {
    // Quotes inside strings are escaped, so a match is never text but a key, and its value follows.
    const text = textKey.exec(data);
    const counts = countsKey.exec(data);
    if (text === null || counts === null || counts.index < text.index) return undefined;
    const start = text.index + text[0].length;
    const end = data.indexOf('"', start + 1) + 1;
    const countsStart = counts.index + counts[0].length;
    const countsEnd = endOfObject(data, countsStart);
    if (countsEnd === undefined || !isPlainString(data.slice(start, end))) return undefined;
    const after = data.slice(countsEnd);
    // A key must not occur twice: then these are not the values that count.
    const rest = data.slice(end, countsStart) + after;
    if (rest.includes('"text"') || after.includes('"usageMetadata"')) return undefined;
    return new GeminiTokenTemplate(data.slice(0, start), data.slice(end, countsStart), after);
  }

  /** The variable parts of an event; undefined if it does not match. */
  read(data: string): TokenOfEvent | undefined {
    const { before, between, after } = this;
    const countsEnd = data.length - after.length;
    // By slices, as in `TokenTemplate`.
    if (data.slice(0, before.length) !== before || data.slice(countsEnd) !== after) return undefined;
    const end = data.indexOf('"', before.length + 1) + 1;
    const countsStart = end + between.length;
    if (end === 0 || data.slice(end, countsStart) !== between) return undefined;
    const token = data.slice(before.length, end);
    if (countsEnd <= countsStart || token.length === 2 || !isPlainString(token)) return undefined;
    const counts = parseCounts(data.slice(countsStart, countsEnd));
    return counts && { token, counts };
  }
}

/** One object and nothing behind it, or undefined. */
function parseCounts(text: string): JsonObject | undefined {
  try {
    const counts: unknown = JSON.parse(text);
    return isObject(counts) ? counts : undefined;
  } catch {
    return undefined;
  }
}

/** The end of the object that begins at `start`; undefined if its braces cannot be counted this simply. */
function endOfObject(data: string, start: number): number | undefined {
  if (data[start] !== '{') return undefined;
  let depth = 0;
  for (let at = start; at < data.length; at++) {
    if (data[at] === '{') depth++;
    else if (data[at] === '}') depth--;
    if (depth === 0) return parseCounts(data.slice(start, at + 1)) === undefined ? undefined : at + 1;
  }
  return undefined;
}

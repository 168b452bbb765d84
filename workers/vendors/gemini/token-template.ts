import { isPlainString } from '../support/delta-stream.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';

const textKey = /"text":\s*/;
const countsKey = /"usageMetadata":\s*/;
/** Maximum length of counts whose shape is kept, and of shapes in a stream: making one costs as much as parsing dozens. */
const maxShape = 2000;
const maxShapes = 3;

/**
 * The events of one stream usually differ in two values: the text, and the counts, whose keys stay. A template is such an event
 * around these, so that a matching event is not parsed, and of the counts only the last, when they are asked for.
 */
export class GeminiTokenTemplate {
  private readonly before: string;
  private readonly between: string;
  private readonly after: string;
  /** The counts of the latest event, as JSON text, if they differ from parsed ones in numbers alone. */
  private latest: string | undefined;
  private parsed: JsonObject | undefined;
  private shape: RegExp | undefined;
  private shapes = 0;

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

  /** The text that an event adds, as a JSON string; undefined if it does not match. */
  read(data: string): string | undefined {
    const { before, between, after } = this;
    const countsEnd = data.length - after.length;
    // By slices, as in `TokenTemplate`.
    if (data.slice(0, before.length) !== before || data.slice(countsEnd) !== after) return undefined;
    const end = data.indexOf('"', before.length + 1) + 1;
    const countsStart = end + between.length;
    if (end === 0 || data.slice(end, countsStart) !== between) return undefined;
    const token = data.slice(before.length, end);
    if (countsEnd <= countsStart || token.length === 2 || !isPlainString(token)) return undefined;
    return this.keepCounts(data.slice(countsStart, countsEnd)) ? token : undefined;
  }

  /** The counts of the events that matched since the last call; undefined if none did. */
  takeCounts(): JsonObject | undefined {
    const { latest, parsed } = this;
    this.latest = undefined;
    this.parsed = undefined;
    return latest === undefined ? parsed : Object.assign(parsed ?? {}, parseCounts(latest));
  }

  /** Whether the counts of an event are one object and nothing behind it. */
  private keepCounts(counts: string): boolean {
    if (this.shape?.test(counts)) {
      this.latest = counts;
      return true;
    }
    const parsed = parseCounts(counts);
    if (parsed === undefined) return false;
    this.parsed = Object.assign(this.takeCounts() ?? {}, parsed);
    this.shape = this.shapes++ < maxShapes ? shapeOf(counts) : undefined;
    return true;
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

/** Matches texts that differ from this one in whole numbers alone: they are JSON if it is. Undefined if none can be made. */
function shapeOf(counts: string): RegExp | undefined {
  // What follows a backslash belongs to it.
  if (counts.length > maxShape || counts.includes('\\')) return undefined;
  const pattern = counts.replace(/[.*+?^${}()|[\]]/g, '\\$&').replace(/\d+/g, '(?:0|[1-9]\\d*)');
  return new RegExp(`^${pattern}$`);
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

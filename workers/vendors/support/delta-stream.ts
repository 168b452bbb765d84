import { TextDecoder } from 'node:util';
import { createParser, type EventSourceParser } from 'eventsource-parser';
import { oneCallEach } from '../../../shared/capabilities/one-call-each.ts';
import { ApiError } from '../../../shared/errors.ts';
import { freeBytes } from '../../http/answer-memory.ts';
import type { Reading } from '../../http/exchange.ts';
import type { FrameSink, VendorCall } from '../vendor.ts';
import { interrupted } from './interrupted.ts';
import type { JsonObject } from './json-object.ts';

/** Bytes that a vendor may send without an answer in them, and how many it may send for each character of the answer. */
const maxUnused = 64 * 1024 * 1024;
const maxPerCharacter = 64;

/** One streamed answer: bytes of its body in, `delta` frames out. */
export abstract class DeltaStream {
  /** Whether reading has ended, whatever the vendor may still send. */
  protected isDone = false;
  /** Frames written so far. A call that fails before the first one may be repeated. */
  protected frames = 0;
  /** Bytes that are kept until the answer ends, whatever else becomes frames. */
  protected kept = 0;
  private readonly sink: FrameSink;
  private isFull = false;
  private reported: ApiError | undefined;
  /** Bytes that have become no frame. Some of them are kept until they do, so they are bounded, as frames are by their log. */
  private unused = 0;
  private readonly maxUnused: number;

  /** @param files how many files its events may carry that become no frames, beside the answer itself. */
  constructor(sink: FrameSink, files = 0) {
    this.sink = sink;
    this.maxUnused = maxUnused * (files + 1);
  }

  /** Whether a frame was written. */
  get hasBegun(): boolean {
    return this.frames > 0;
  }

  /** Takes bytes of the body. @throws ApiError the error that the vendor reports. */
  read(bytes: Buffer): Reading {
    this.unused += bytes.length;
    this.take(bytes);
    if (this.isDone) return 'finished';
    if (this.unused > this.maxUnused) {
      throw new ApiError('server_error', "The model's vendor sent too much that is no part of an answer.");
    }
    if (this.isFull) {
      this.isFull = false;
      return this.sink.drained();
    }
    const held = this.unused + this.kept;
    return held > freeBytes ? held : undefined;
  }

  /** Classifies a failure of the call. */
  failure(thrown: unknown): ApiError {
    const isFinal = this.frames === 0 || thrown === this.reported;
    return isFinal ? ApiError.from(thrown) : interrupted(thrown);
  }

  /** Parses bytes, and writes their deltas. */
  protected abstract take(bytes: Buffer): void;

  /** @param text JSON text of a `delta` frame. */
  protected write(text: string): void {
    this.frames += 1;
    this.unused = Math.max(0, this.unused - maxPerCharacter * text.length);
    if (!this.sink.write({ type: 'delta', text })) this.isFull = true;
  }

  /** Writes a chunk of a chat, each of its calls as a frame. */
  protected writeChunk(chunk: JsonObject): void {
    for (const piece of hasSeveralCalls(chunk) ? oneCallEach(chunk) : [chunk]) this.write(JSON.stringify(piece));
  }

  /** Counts bytes that are kept until the answer ends. */
  protected keep(bytes: number): void {
    this.kept += bytes;
    this.unused = Math.max(0, this.unused - bytes);
  }

  /** Ends the call with the error that the vendor reports. */
  protected fail(error: ApiError): never {
    this.reported = error;
    throw error;
  }
}

function hasSeveralCalls({ choices }: JsonObject): boolean {
  return Array.isArray(choices) && choices.some((choice) => choice?.delta?.tool_calls?.length > 1);
}

/** Requests of a call that others take the place of. None needs more; two refusals may each ask for what the other one refuses. */
const maxReplaced = 5;

/**
 * The call to make in place of one that the vendor has refused.
 * @param stream of the failed call, if it has one
 * @param afterRefusal makes its request by the failure; undefined: there is none
 * @throws ApiError the failure, if there is no such request, or if frames of the answer were written
 */
export function callInPlace(
  thrown: unknown,
  stream: DeltaStream | undefined,
  call: VendorCall,
  afterRefusal: ((error: unknown, call: VendorCall) => string | undefined) | undefined,
): VendorCall {
  const error = stream?.failure(thrown) ?? thrown;
  const { replaced = 0, refusal = error } = call;
  const request = stream?.hasBegun || replaced >= maxReplaced ? undefined : afterRefusal?.(error, call);
  if (request === undefined) throw isOfSameField(error, refusal) ? refusal : error;
  return { ...call, request, replaced: replaced + 1, refusal };
}

/** Whether a request is refused for the field that was to make it acceptable: of its value the caller knows nothing. */
function isOfSameField(error: unknown, refusal: unknown): boolean {
  if (!(error instanceof ApiError) || !(refusal instanceof ApiError) || error.param === null) return false;
  return error.param === refusal.param && error.code === refusal.code;
}

/** Default maximum size of one event, in characters. */
export const maxEvent = 8 * 1024 * 1024;

/** Maximum number of lines of one event: each takes dozens of bytes in memory, whatever it says. */
const maxLines = 100_000;
/** Characters since the last event whose lines are not counted: nearly all events are shorter. */
const uncounted = 256 * 1024;

/**
 * Reads server-sent events (WHATWG HTML, "Server-sent events") from bytes that may be split anywhere. An event that the stream
 * leaves unfinished (no blank line after it) is dropped, as the standard requires.
 */
export class SseReader {
  private readonly parser: EventSourceParser;
  private decoder: TextDecoder | undefined;
  /** Whether the bytes so far may end inside a character, which the decoder then holds. */
  private insideCharacter = false;
  private atStart = true;
  private afterReturn = false;
  /** Characters since the last event. */
  private unended = 0;
  /** Lines of a long event. */
  private lines = 0;

  /**
   * @param onEvent receives an event's data and its type; what it throws, `read` throws.
   * @param maxCharacters maximum size of one event: more if events carry whole files
   */
  constructor(onEvent: (data: string, type: string | undefined) => void, maxCharacters = maxEvent) {
    this.parser = createParser({
      onEvent: (event) => {
        this.unended = 0;
        onEvent(event.data, event.event);
      },
      onError: (error) => {
        if (error.type !== 'max-buffer-size-exceeded') return;
        throw new ApiError('server_error', `The vendor sent an event of more than ${maxCharacters} characters.`);
      },
      maxBufferSize: maxCharacters,
    });
  }

  /** @throws ApiError when an event is too large; nothing can be read after that. */
  read(bytes: Buffer): void {
    let text = this.decode(bytes);
    if (text === '') return;
    if (this.atStart) {
      this.atStart = false;
      if (text.startsWith('\uFEFF')) text = text.slice(1);
    }
    if (this.afterReturn && text.startsWith('\n')) text = text.slice(1);
    this.afterReturn = text.endsWith('\r');
    // The parser would hold back a trailing CR, and with it a whole event, and look for a CR in all that follows each line.
    if (text.includes('\r')) text = text.replaceAll('\r\n', '\n').replaceAll('\r', '\n');
    this.unended += text.length;
    if (this.unended > uncounted) this.countLines(text);
    this.parser.feed(text);
  }

  /** Counts the lines of a long event, since the last blank one. */
  private countLines(text: string): void {
    if (this.unended - text.length <= uncounted) this.lines = 0;
    for (let [at, before] = [text.indexOf('\n'), -2]; at >= 0; [at, before] = [text.indexOf('\n', at + 1), at]) {
      this.lines = at === before + 1 ? 0 : this.lines + 1;
    }
    if (this.lines > maxLines) {
      throw new ApiError('server_error', `The vendor sent an event of more than ${maxLines} lines.`);
    }
  }

  private decode(bytes: Buffer): string {
    const last = bytes[bytes.length - 1];
    if (last === undefined) return '';
    const endsInAscii = last < 0x80;
    // Nearly every chunk ends with a newline, and then a plain conversion costs a fraction of a streaming decoder's.
    if (endsInAscii && !this.insideCharacter) return bytes.toString();
    this.decoder ??= new TextDecoder('utf-8', { ignoreBOM: true });
    this.insideCharacter = !endsInAscii;
    return this.decoder.decode(bytes, { stream: true });
  }
}

/** Placeholder for the token while a template is made; no vendor sends it. */
const marker = '"the token goes here: 5f1c7c0e-7c55-4a0b-9a57-2f2c1a3a8f10"';
/** The text before the token in the chunks of a chat. */
const contentStart = /"delta":\s*\{[^{}]*?"content":\s*/;
/** A JSON string without escapes; one with escapes is parsed instead. */
const plainString = /^"[ !#-[\]-\uffff]*"$/;

/** Whether it is the text of a JSON string without escapes. */
export function isPlainString(text: string): boolean {
  return plainString.test(text);
}

/**
 * The chunks of one stream usually differ in a single string, the token. A template is such a chunk around its token, and the
 * frame that it becomes. Replacing a string in JSON by another string changes that value and nothing else, so a matching chunk
 * needs no parsing, which was a quarter of a stream's cost on this side.
 */
export class TokenTemplate {
  private readonly before: string;
  private readonly after: string;
  private readonly frameBefore: string;
  private readonly frameAfter: string;

  private constructor(before: string, after: string, frameBefore: string, frameAfter: string) {
    this.before = before;
    this.after = after;
    this.frameBefore = frameBefore;
    this.frameAfter = frameAfter;
  }

  /**
   * @param data The text of a chunk, known to be whole JSON.
   * @param toFrame Makes the frame of a chunk by parsing it.
   * @param tokenStart Matches up to the token.
   * @returns undefined if the token's position is not certain.
   */
  static from(
    data: string,
    toFrame: (data: string) => string | undefined,
    tokenStart = contentStart,
  ): TokenTemplate | undefined {
    // Quotes inside strings are escaped, so a match is never text but a key, and its value follows.
    const found = tokenStart.exec(data);
    if (!found) return undefined;
    const start = found.index + found[0].length;
    const end = data.indexOf('"', start + 1) + 1;
    if (!plainString.test(data.slice(start, end))) return undefined;
    const before = data.slice(0, start);
    const after = data.slice(end);
    const [frameBefore, frameAfter, ...more] = toFrame(before + marker + after)?.split(marker) ?? [];
    // The marker is missing if the key occurs twice: then this is not the value that counts.
    if (frameBefore === undefined || frameAfter === undefined || more.length > 0) return undefined;
    return new TokenTemplate(before, after, frameBefore, frameAfter);
  }

  /** The frame of a chunk, or undefined if it does not match. */
  frame(data: string): string | undefined {
    const { before, after } = this;
    const tokenEnd = data.length - after.length;
    if (tokenEnd < before.length) return undefined;
    // Slices are compared by words of memory, `startsWith` goes by character: it was a tenth of a worker's time for streams.
    if (data.slice(0, before.length) !== before || data.slice(tokenEnd) !== after) return undefined;
    const token = data.slice(before.length, tokenEnd);
    return plainString.test(token) ? this.frameBefore + token + this.frameAfter : undefined;
  }
}

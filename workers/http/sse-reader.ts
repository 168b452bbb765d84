import { TextDecoder } from 'node:util';
import { createParser, type EventSourceParser } from 'eventsource-parser';
import { ApiError } from '../../shared/errors.ts';

/** Default maximum size of one event, in characters. */
export const maxEvent = 8 * 1024 * 1024;

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

  /**
   * @param onEvent receives an event's data and its type; what it throws, `read` throws.
   * @param maxCharacters maximum size of one event: more if events carry whole files
   */
  constructor(onEvent: (data: string, type: string | undefined) => void, maxCharacters = maxEvent) {
    this.parser = createParser({
      onEvent: (event) => onEvent(event.data, event.event),
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
    this.parser.feed(text.includes('\r') ? text.replace(/\r\n?/g, '\n') : text);
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

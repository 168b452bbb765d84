/**
 * One keep-alive HTTP/1.1 client connection on a bare socket. The load shares the machine with what it measures, so it
 * looks at no more of an answer than where it ends, its status and, in a stream, its events.
 */
import { connect, type Socket } from 'node:net';

/** What one answer was. */
export interface RawAnswer {
  status: number;
  /** Server-sent events seen (blank lines that end one). */
  events: number;
  /** True when the body ended with `data: [DONE]`. */
  done: boolean;
}

export interface RawConnectionHandlers {
  /** New events of the answer under way. */
  onEvents?(count: number): void;
  onAnswer(answer: RawAnswer): void;
  /** The socket ended, whoever ended it; an answer under way will not come. */
  onClose(reason: string): void;
}

const doneEvent = 'data: [DONE]\n\n';
const blankLine = Buffer.from('\n\n');
const newline = 0x0a;
const carriageReturn = 0x0d;
const semicolon = 0x3b;
const maximumHead = 65_536;
// Reads are handled to their end before the next read, so all sockets share one buffer.
const readBuffer = Buffer.allocUnsafe(65_536);

type State = 'head' | 'sized' | 'chunk-size' | 'chunk' | 'chunk-end' | 'trailer';

export class RawConnection {
  private readonly socket: Socket;
  private readonly handlers: RawConnectionHandlers;
  private state: State = 'head';
  private head = '';
  private remaining = 0;
  private status = 0;
  private streamed = false;
  private events = 0;
  private tail = '';
  private lineLength = 0;
  private extension = false;

  constructor(address: { host: string; port: number }, handlers: RawConnectionHandlers) {
    this.handlers = handlers;
    let reason = 'connection closed';
    this.socket = connect({
      ...address,
      noDelay: true,
      onread: {
        buffer: readBuffer,
        callback: (length) => {
          this.read(readBuffer.subarray(0, length));
          return true;
        },
      },
    });
    this.socket.on('error', (error: NodeJS.ErrnoException) => {
      reason = error.code ?? error.message;
    });
    this.socket.on('close', () => handlers.onClose(reason));
  }

  /** Sends one request; the next may be sent once its answer has come. */
  send(request: Buffer): void {
    this.socket.write(request);
  }

  close(): void {
    this.socket.destroy();
  }

  private read(bytes: Buffer): void {
    let at = 0;
    while (at < bytes.length && !this.socket.destroyed) {
      if (this.state === 'head') at = this.readHead(bytes, at);
      else if (this.state === 'sized') at = this.readSized(bytes, at);
      else if (this.state === 'chunk-size') at = this.readChunkSize(bytes, at);
      else if (this.state === 'chunk') at = this.readChunk(bytes, at);
      else if (this.state === 'chunk-end') at = this.readChunkEnd(bytes, at);
      else at = this.readTrailer(bytes, at);
    }
  }

  private readHead(bytes: Buffer, at: number): number {
    const before = this.head.length;
    const text = this.head + bytes.toString('latin1', at);
    const end = text.indexOf('\r\n\r\n');
    if (end < 0) {
      if (text.length > maximumHead) this.socket.destroy(new Error('head too long'));
      this.head = text;
      return bytes.length;
    }
    const head = text.slice(0, end);
    this.head = '';
    this.status = Number(head.slice(9, 12));
    this.streamed = /\r\ncontent-type: *text\/event-stream/i.test(head);
    this.events = 0;
    this.tail = '';
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    if (length !== undefined) {
      this.remaining = Number(length);
      if (this.remaining > 0) this.state = 'sized';
      else this.finish();
    } else if (/\r\ntransfer-encoding: *chunked/i.test(head)) {
      this.remaining = 0;
      this.state = 'chunk-size';
    } else if (this.status >= 200) {
      this.socket.destroy(new Error('an answer without a length'));
    }
    return at + end + 4 - before;
  }

  private readSized(bytes: Buffer, at: number): number {
    const end = Math.min(bytes.length, at + this.remaining);
    this.remaining -= end - at;
    if (this.streamed) this.readEvents(bytes, at, end);
    if (this.remaining === 0) this.finish();
    return end;
  }

  private readChunkSize(bytes: Buffer, from: number): number {
    let at = from;
    while (at < bytes.length) {
      const byte = bytes[at++] ?? 0;
      if (byte === newline) {
        this.extension = false;
        this.state = this.remaining === 0 ? 'trailer' : 'chunk';
        return at;
      }
      if (byte === semicolon) this.extension = true;
      const digit = hexadecimalDigit(byte);
      if (digit >= 0 && !this.extension) this.remaining = this.remaining * 16 + digit;
    }
    return at;
  }

  private readChunk(bytes: Buffer, at: number): number {
    const end = Math.min(bytes.length, at + this.remaining);
    this.remaining -= end - at;
    if (this.streamed) this.readEvents(bytes, at, end);
    if (this.remaining === 0) this.state = 'chunk-end';
    return end;
  }

  private readChunkEnd(bytes: Buffer, at: number): number {
    const end = bytes.indexOf(newline, at);
    if (end < 0) return bytes.length;
    this.state = 'chunk-size';
    return end + 1;
  }

  /** An empty line after the last chunk ends the answer. */
  private readTrailer(bytes: Buffer, from: number): number {
    let at = from;
    while (at < bytes.length) {
      const byte = bytes[at++];
      if (byte === newline) {
        if (this.lineLength === 0) {
          this.finish();
          return at;
        }
        this.lineLength = 0;
      } else if (byte !== carriageReturn) {
        this.lineLength += 1;
      }
    }
    return at;
  }

  private readEvents(bytes: Buffer, from: number, end: number): void {
    if (from === end) return;
    let count = 0;
    let at = from;
    if (bytes[at] === newline && this.tail.endsWith('\n')) {
      count += 1;
      at += 1;
    }
    for (;;) {
      const found = bytes.indexOf(blankLine, at);
      if (found < 0 || found + 2 > end) break;
      count += 1;
      at = found + 2;
    }
    const last = bytes.toString('latin1', Math.max(from, end - doneEvent.length), end);
    this.tail = last.length === doneEvent.length ? last : (this.tail + last).slice(-doneEvent.length);
    this.events += count;
    if (count > 0) this.handlers.onEvents?.(count);
  }

  private finish(): void {
    this.state = 'head';
    if (this.status < 200) return;
    this.handlers.onAnswer({ status: this.status, events: this.events, done: this.tail === doneEvent });
  }
}

function hexadecimalDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

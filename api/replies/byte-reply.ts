import type { ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ApiError } from '../../shared/errors.ts';
import { errorOf, type Frame } from '../../shared/jobs/append.ts';
import { stalledMs } from './client-connection.ts';
import type { FrameReceiver } from './frame-receiver.ts';
import { StreamedReply } from './streamed-reply.ts';
import { expired } from './unreadable-answer.ts';
import type { BytesView } from './view.ts';

/** Options of a byte reply. */
export interface ByteReplyOptions {
  readonly response: ServerResponse;
  /** Further headers, sent with the status. */
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: BytesView;
  /** When the request arrived, in ms of `performance.now()`. */
  readonly startedAt: number;
  /** Opens the stored file of an answer. @throws Error when it is gone. */
  readonly openFile: (file: string) => Promise<{ readonly content: Readable; readonly bytes: number }>;
}

/**
 * An answer of bytes, sent as they arrive. The status waits for the first of them, so that an early error is a real HTTP
 * error. Bytes cannot contain an error: a later one closes the connection, and the client sees an incomplete body. If only
 * the end of the job remains, its stored file is sent.
 */
export class ByteReply extends StreamedReply implements FrameReceiver {
  readonly #options: ByteReplyOptions;
  readonly #response: ServerResponse;
  #pending: Buffer[] = [];
  #isFull = false;

  constructor(options: ByteReplyOptions) {
    super();
    this.#options = options;
    this.#response = options.response;
  }

  frame(frame: Frame): void {
    if (this.isEnded) return;
    this.countFrame(frame);
    const error = errorOf(frame);
    if (error !== undefined) {
      this.fail(error);
      return;
    }
    const chunk = this.#options.bytes.chunk(frame);
    if (chunk !== undefined && chunk.length > 0) {
      this.#open({});
      this.#pending.push(chunk);
    }
    if (frame.type === 'end') this.#finish(frame);
  }

  flush(): boolean {
    if (this.#pending.length > 0 && !this.isEnded) this.#write();
    return !this.#isFull;
  }

  tick(): void {
    // Bytes have no pings.
  }

  /** Ends the answer with an error: as a status if none is sent, else by closing the connection. */
  fail(error: ApiError): void {
    if (this.isEnded) return;
    const rest = this.#takePending();
    this.markEnded(error);
    if (!this.isOpen) return;
    // Earlier bytes are the client's: the connection closes once they are sent.
    if (rest.length > 0) this.#response.write(rest, () => this.#response.destroy());
    else this.#response.destroy();
  }

  #open(headers: Record<string, number>): void {
    if (this.isOpen) return;
    this.markOpen();
    this.#response.writeHead(200, {
      ...this.#options.headers,
      'content-type': this.#options.bytes.contentType,
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
      'openai-processing-ms': String(Math.round(performance.now() - this.#options.startedAt)),
      ...headers,
    });
  }

  #write(): void {
    const chunk = this.#takePending();
    const socket = this.sendHead(this.#response);
    const hasRoom = this.#response.write(chunk);
    socket?.uncork();
    if (hasRoom) return;
    this.#isFull = true;
    this.#response.once('drain', () => {
      this.#isFull = false;
      this.onDrain?.();
    });
  }

  #takePending(): Buffer {
    const chunks = this.#pending;
    this.#pending = [];
    const taken = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
    this.bytes += taken.length;
    return taken;
  }

  #finish(end: Frame): void {
    if (this.isOpen) {
      const last = this.#takePending();
      const socket = this.sendHead(this.#response);
      this.endResponse(this.#response, last, undefined);
      socket?.uncork();
      return;
    }
    const file = this.#options.bytes.file(end);
    if (file === undefined) this.fail(expired());
    else this.#sendFile(file).catch((error) => this.fail(this.isOpen ? ApiError.from(error) : expired()));
  }

  async #sendFile(file: string): Promise<void> {
    const { content, bytes } = await this.#options.openFile(file);
    if (this.isEnded) {
      content.destroy();
      return;
    }
    this.#open({ 'content-length': bytes });
    // The reader is done, and no longer ticks.
    this.#response.setTimeout(stalledMs, () => this.#response.destroy());
    await pipeline(content, this.#response);
    this.bytes = bytes;
    this.markEnded(undefined);
  }
}

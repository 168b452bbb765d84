import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ApiError } from '../../shared/errors.ts';
import type { Frame } from '../../shared/jobs/append.ts';
import { callerLeft } from '../../shared/jobs/end-errors.ts';

/** The common part of all streamed answers: their start, their end, and their counters. */
export abstract class StreamedReply {
  /** Resolves when it has started (its status is sent); rejects with the ApiError before that. */
  readonly opened: Promise<void>;
  /** Resolves when all of it is sent, with the error that ended it, if any. */
  readonly ended: Promise<ApiError | undefined>;
  /** Set by the reader of its frames: the client accepts them again. */
  onDrain: (() => void) | undefined;
  /** When the first frame arrived, in ms since 1970. */
  firstFrameAt: number | undefined;
  frames = 0;
  /** The blobs that frames came from. An answer of a bounded size has few. */
  readonly blobs: string[] = [];
  /** Bytes of the body passed to the response, without HTTP's framing. */
  bytes = 0;
  /** Bytes of the body that never reached the connection although the response reports completion; normally 0. */
  missingBytes = 0;
  /** The connection of the answer, and its bytes written before the body. */
  #socket: Socket | undefined;
  #bytesBefore = 0;
  #isOpen = false;
  #isHeadSent = false;
  #isEnded = false;
  #isOver = false;
  #resolveOpened: () => void = () => undefined;
  #rejectOpened: (error: ApiError) => void = () => undefined;
  #resolveEnded: (error: ApiError | undefined) => void = () => undefined;

  constructor() {
    this.opened = new Promise((resolve, reject) => {
      this.#resolveOpened = resolve;
      this.#rejectOpened = reject;
    });
    // It may fail before anybody waits; later waits still get the error.
    this.opened.catch(() => undefined);
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
  }

  /** Whether it has started. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Whether nothing further may be sent. */
  protected get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Whether `ended` is resolved: a later close of the connection is by this side. */
  get isOver(): boolean {
    return this.#isOver;
  }

  protected get isHeadSent(): boolean {
    return this.#isHeadSent;
  }

  protected countFrame({ blob }: Frame): void {
    this.firstFrameAt ??= Date.now();
    this.frames++;
    if (blob !== undefined) this.blobs.push(blob);
  }

  protected markOpen(): void {
    this.#isOpen = true;
    this.#resolveOpened();
  }

  /**
   * Sends the head of a response, once. Node keeps the head as long as the answer lasts: flushed separately it is kept as
   * one text instead of the hundred pieces that it was made of, which take 4 KB. Returns the socket, corked, so that the
   * head is sent with the first bytes. The caller writes them and uncorks synchronously, which avoids a dependency on Node's
   * internal order. The bytes that the socket writes from here on are compared with `bytes`.
   */
  protected sendHead(response: ServerResponse): Socket | undefined {
    if (this.#isHeadSent) return undefined;
    this.#isHeadSent = true;
    const socket = response.socket ?? undefined;
    socket?.cork();
    response.flushHeaders();
    if (socket !== undefined) {
      this.#socket = socket;
      this.#bytesBefore = socket.bytesWritten;
    }
    return socket;
  }

  /** Ends a response with its last bytes. The answer has ended, with `error`, when they are sent. */
  protected endResponse(response: ServerResponse, last: string | Buffer, error: ApiError | undefined): void {
    this.#isEnded = true;
    response.end(last, () => {
      // Of a HEAD request no body is written.
      const socket = response.req?.method === 'HEAD' ? undefined : this.#socket;
      const written = socket === undefined ? this.bytes : socket.bytesWritten - this.#bytesBefore;
      this.missingBytes = Math.max(0, this.bytes - written);
      this.markEnded(error);
    });
  }

  /** Abandons the client: it has disconnected, or gets another response. */
  abandon(): void {
    if (!this.#isEnded) this.markEnded(callerLeft());
  }

  /** @param error why it ended; required if the answer never started */
  protected markEnded(error: ApiError | undefined): void {
    this.#isEnded = true;
    this.#isOver = true;
    if (!this.#isOpen && error !== undefined) this.#rejectOpened(error);
    this.#resolveEnded(error);
  }
}

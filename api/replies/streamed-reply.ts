import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ApiError } from '../../shared/errors.ts';

/** What all answers that are sent as they grow have in common: when they begin, how they end, and what is counted. */
export abstract class StreamedReply {
  /** Resolves when it has begun (its status is out); rejects with the ApiError that came before that. */
  readonly opened: Promise<void>;
  /** Resolves when the last of it has left, with the error that ended it, if any. */
  readonly ended: Promise<ApiError | undefined>;
  /** Set by the reader of its frames: the client takes them again. */
  onDrain: (() => void) | undefined;
  /** When the first frame came, in ms since 1970. */
  firstFrameAt: number | undefined;
  frames = 0;
  /** Bytes of the body handed to the response, without what HTTP puts around them. */
  bytes = 0;
  /** Bytes of the body that never came to the connection, though the response says that it is whole; 0 when all is well. */
  missingBytes = 0;
  /** The connection the answer goes out on, and what had been written to it before the body. */
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
    // Nobody may be waiting yet when it fails; whoever awaits later still gets the error.
    this.opened.catch(() => undefined);
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
  }

  /** Whether it has begun. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Whether nothing more is to be said. */
  protected get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Whether `ended` is resolved: closing the connection after that is this side's doing. */
  get isOver(): boolean {
    return this.#isOver;
  }

  protected get isHeadSent(): boolean {
    return this.#isHeadSent;
  }

  protected countFrame(): void {
    this.firstFrameAt ??= Date.now();
    this.frames++;
  }

  protected markOpen(): void {
    this.#isOpen = true;
    this.#resolveOpened();
  }

  /**
   * Sends the head of a response, once. Node keeps the head as long as the answer lasts: sent as a part of its own it is
   * kept as one text, and not as the hundred pieces it was made of, which are 4 KB. Returns the socket, corked, so that
   * the head leaves with the first bytes: the caller writes them and uncorks, within one call, so that this depends on no
   * order in which Node does its own work. What the socket has written from here on is held against `bytes`.
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

  /** Ends a response with its last bytes. The answer has ended, with `error`, when they have left. */
  protected endResponse(response: ServerResponse, last: string | Buffer, error: ApiError | undefined): void {
    this.#isEnded = true;
    response.end(last, () => {
      const written = this.#socket === undefined ? this.bytes : this.#socket.bytesWritten - this.#bytesBefore;
      this.missingBytes = Math.max(0, this.bytes - written);
      this.markEnded(error);
    });
  }

  /** @param error why it ended; it must be given where the answer never began */
  protected markEnded(error: ApiError | undefined): void {
    this.#isEnded = true;
    this.#isOver = true;
    if (!this.#isOpen && error !== undefined) this.#rejectOpened(error);
    this.#resolveEnded(error);
  }
}

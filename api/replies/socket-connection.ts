import type { Socket } from 'node:net';
import { WebSocket } from 'ws';
import { pingMs } from './sse-reply.ts';

/** Time (ms) without a response to pings after which a client is considered gone. */
const silentMs = 90_000;

/** Time that an aborted client has to receive the reason. */
const cutMs = 1000;

/** Close codes (RFC 6455, section 7.4.1). */
export const closeCodes = {
  /** All is sent, an error perhaps as the last of it. */
  finished: 1000,
  /** The client exceeded its limits, or sent a message where none is taken. */
  policyViolation: 1008,
  /** This side is shutting down: the client may reconnect. */
  goingAway: 1001,
  /** Something failed on this side. */
  failed: 1011,
} as const;

/**
 * Sends text messages on one WebSocket: backpressure, liveness checks, and a close that waits for pending writes. Bounded:
 * senders stop when `send` returns false, and continue with `onDrain`.
 */
export class SocketConnection {
  /** Resolves when the connection is closed, by either side. */
  readonly closed: Promise<void>;
  readonly #webSocket: WebSocket;
  readonly #socket: Socket;
  readonly #drains = new Set<() => void>();
  readonly #pings: NodeJS.Timeout;
  #isFull = false;
  #isPaused = false;
  /** Checks since the client was heard, or had to read. Counted, as the clock of the host may be put right meanwhile. */
  #unheardChecks = 0;
  #closing: { readonly code: number; readonly reason: string } | undefined;

  constructor(webSocket: WebSocket, socket: Socket) {
    this.#webSocket = webSocket;
    this.#socket = socket;
    this.#pings = setInterval(() => this.#checkAlive(), pingMs);
    const hear = (): void => {
      this.#unheardChecks = 0;
    };
    webSocket.on('pong', hear).on('message', hear);
    // An error closes the connection; it has no other receiver.
    webSocket.on('error', () => undefined);
    this.closed = new Promise((resolve) => {
      webSocket.once('close', () => {
        clearInterval(this.#pings);
        resolve();
      });
    });
    socket.on('drain', () => this.#drained());
  }

  /** Whether the client has yet to read what was sent. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** Whether this side has closed it. Messages that came before may still be received. */
  get isClosing(): boolean {
    return this.#closing !== undefined;
  }

  get isOpen(): boolean {
    return this.#closing === undefined && this.#webSocket.readyState === WebSocket.OPEN;
  }

  /** Sends messages in one write. Returns whether the client accepts more for now. */
  send(messages: readonly string[]): boolean {
    if (!this.isOpen) return true;
    this.#socket.cork();
    for (const message of messages) this.#webSocket.send(message);
    this.#socket.uncork();
    if (this.#socket.writableNeedDrain) {
      this.#isFull = true;
      this.#unheardChecks = 0;
    }
    return !this.#isFull;
  }

  /** Calls `listener` whenever the client has read what was sent. Returns a function that unsubscribes. */
  onDrain(listener: () => void): () => void {
    this.#drains.add(listener);
    return () => this.#drains.delete(listener);
  }

  /** Pauses or resumes reading. While paused, the client need not respond to pings. */
  setReading(isReading: boolean): void {
    if (isReading !== this.#isPaused) return;
    this.#isPaused = !isReading;
    this.#unheardChecks = 0;
    if (isReading) this.#webSocket.resume();
    else this.#webSocket.pause();
  }

  /** Closes once the client has read everything. */
  close(code: number, reason: string): void {
    if (this.#closing !== undefined) return;
    this.#closing = { code, reason };
    // The client's own close frame has to be read.
    this.setReading(true);
    if (!this.#isFull) this.#webSocket.close(code, reason);
  }

  /** Closes without reading anything further, including the client's own close. */
  cut(code: number, reason: string): void {
    if (this.#closing !== undefined) return;
    this.#closing = { code, reason };
    this.#webSocket.close(code, reason);
    this.#webSocket.pause();
    setTimeout(() => this.#webSocket.terminate(), cutMs);
  }

  #drained(): void {
    this.#unheardChecks = 0;
    this.#isFull = false;
    if (this.#closing !== undefined) this.#webSocket.close(this.#closing.code, this.#closing.reason);
    else for (const listener of [...this.#drains]) listener();
  }

  #checkAlive(): void {
    // A full connection gets no pings, so it sends no responses either.
    if (this.#isFull) return;
    if (++this.#unheardChecks * pingMs > silentMs && !this.#isPaused) this.#webSocket.terminate();
    else if (this.#webSocket.readyState === WebSocket.OPEN) this.#webSocket.ping();
  }
}

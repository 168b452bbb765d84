import type { Socket } from 'node:net';
import { WebSocket } from 'ws';
import { pingMs } from './sse-reply.ts';

/** A client that has answered no ping for so long (ms) is gone. */
const silentMs = 90_000;

/** How long a client that is cut off has to take the reason. */
const cutMs = 1000;

/** Close codes (RFC 6455, section 7.4.1). */
export const closeCodes = {
  finished: 1000,
  /** The client has asked for more than it may. */
  policyViolation: 1008,
  /** This side is going: the client may connect anew. */
  goingAway: 1001,
  /** Something broke on this side. */
  failed: 1011,
} as const;

/**
 * One WebSocket as text messages go out on it: whether the client takes more, whether it is still there, and a close that
 * waits for what was written. Bounded: whoever sends stops when `send` answers false, and goes on with `onDrain`.
 */
export class SocketConnection {
  /** Resolves when the connection is closed, from either side. */
  readonly closed: Promise<void>;
  readonly #webSocket: WebSocket;
  readonly #socket: Socket;
  readonly #drains = new Set<() => void>();
  readonly #pings: NodeJS.Timeout;
  #isFull = false;
  #isPaused = false;
  #heardAt = Date.now();
  #closing: { readonly code: number; readonly reason: string } | undefined;

  constructor(webSocket: WebSocket, socket: Socket) {
    this.#webSocket = webSocket;
    this.#socket = socket;
    this.#pings = setInterval(() => this.#checkAlive(Date.now()), pingMs);
    const hear = (): void => {
      this.#heardAt = Date.now();
    };
    webSocket.on('pong', hear).on('message', hear);
    // What breaks the connection closes it; there is nobody to tell.
    webSocket.on('error', () => undefined);
    this.closed = new Promise((resolve) => {
      webSocket.once('close', () => {
        clearInterval(this.#pings);
        resolve();
      });
    });
    socket.on('drain', () => this.#drained());
  }

  /** Whether the client has yet to take what was sent. */
  get isFull(): boolean {
    return this.#isFull;
  }

  get isOpen(): boolean {
    return this.#closing === undefined && this.#webSocket.readyState === WebSocket.OPEN;
  }

  /** Sends messages in one write. Returns whether the client takes more for now. */
  send(messages: readonly string[]): boolean {
    if (!this.isOpen) return true;
    this.#socket.cork();
    for (const message of messages) this.#webSocket.send(message);
    this.#socket.uncork();
    if (this.#socket.writableNeedDrain) {
      this.#isFull = true;
      this.#heardAt = Date.now();
    }
    return !this.#isFull;
  }

  /** Calls `listener` whenever the client has taken what was sent. Returns how to end that. */
  onDrain(listener: () => void): () => void {
    this.#drains.add(listener);
    return () => this.#drains.delete(listener);
  }

  /** Whether messages are to be read. While they are not, the client is not held to answering pings. */
  setReading(isReading: boolean): void {
    if (isReading !== this.#isPaused) return;
    this.#isPaused = !isReading;
    this.#heardAt = Date.now();
    if (isReading) this.#webSocket.resume();
    else this.#webSocket.pause();
  }

  /** Closes once the client has taken everything. */
  close(code: number, reason: string): void {
    if (this.#closing !== undefined) return;
    this.#closing = { code, reason };
    // The client's own close frame has to be read.
    this.setReading(true);
    if (!this.#isFull) this.#webSocket.close(code, reason);
  }

  /** Closes without reading anything more, also not the client's own close. */
  cut(code: number, reason: string): void {
    if (this.#closing !== undefined) return;
    this.#closing = { code, reason };
    this.#webSocket.close(code, reason);
    this.#webSocket.pause();
    setTimeout(() => this.#webSocket.terminate(), cutMs);
  }

  #drained(): void {
    this.#heardAt = Date.now();
    this.#isFull = false;
    if (this.#closing !== undefined) this.#webSocket.close(this.#closing.code, this.#closing.reason);
    else for (const listener of [...this.#drains]) listener();
  }

  #checkAlive(now: number): void {
    const unheard = now - this.#heardAt;
    // To a full connection nothing is sent, so nothing is answered either.
    if (this.#isFull) return;
    if (unheard > silentMs && !this.#isPaused) this.#webSocket.terminate();
    else if (this.#webSocket.readyState === WebSocket.OPEN) this.#webSocket.ping();
  }
}

import type { ServerResponse } from 'node:http';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import type { Journal, JournalEntry } from './journal.ts';

/** Write sizes that eventually split an event at every offset: inside UTF-8 sequences and between CR and LF too. */
const PIECE_SIZES = [1, 1, 2, 1, 3];

/**
 * A call that takes time to answer. It follows the client: once the client has disconnected (or the answer has been sent),
 * `closed` is true, its timer is gone, and every wait returns at once.
 */
export class OpenCall {
  closed = false;
  readonly response: ServerResponse;
  readonly entry: JournalEntry;
  readonly #journal: Journal;
  #endedByFault = false;
  #timer: NodeJS.Timeout | undefined;
  #wake: (() => void) | undefined;

  constructor(response: ServerResponse, journal: Journal, about: Parameters<Journal['begin']>[0]) {
    this.response = response;
    this.#journal = journal;
    this.entry = journal.begin(about);
    response.once('close', () => this.#close());
  }

  #close(): void {
    this.closed = true;
    clearTimeout(this.#timer);
    const completed = this.response.writableFinished ? 'completed' : 'client_closed';
    this.#journal.end(this.entry, this.#endedByFault ? 'fault' : completed);
    this.#wake?.();
  }

  /** Waits this long, or until the call is closed. */
  pause(milliseconds: number): Promise<void> {
    if (milliseconds <= 0 || this.closed) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wake = resolve;
      this.#timer = setTimeout(resolve, Math.ceil(milliseconds));
    });
  }

  /** Waits until the client disconnects. */
  silence(): Promise<void> {
    if (this.closed) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  /** Writes a part of the answer; resolves when the client has read enough for more. */
  write(part: string | Buffer): Promise<void> | undefined {
    if (this.closed || this.response.write(part)) return undefined;
    return new Promise((resolve) => {
      this.#wake = resolve;
      this.response.once('drain', resolve);
    });
  }

  /** Writes a part of the answer in many small writes, each in a separate pass of the event loop. */
  async writeInPieces(part: Buffer): Promise<void> {
    for (let start = 0, piece = 0; start < part.length && !this.closed; piece += 1) {
      const end = start + (PIECE_SIZES[piece % PIECE_SIZES.length] as number);
      await this.write(part.subarray(start, end));
      await yieldToEventLoop();
      start = end;
    }
  }

  /**
   * Records that the call's fault occurred.
   * @param ends true: the fault ends the call, not the client.
   */
  meetFault(kind: string, ends: boolean): void {
    this.entry.fault = kind;
    this.#endedByFault = ends;
  }

  /** Resets the connection, after earlier writes have been handed to the network. */
  async reset(): Promise<void> {
    if (this.response.headersSent && !this.closed) await this.#flush();
    this.response.socket?.resetAndDestroy();
  }

  /** Closes the connection in the middle of the answer. */
  async disconnect(): Promise<void> {
    if (!this.closed) await this.#flush();
    this.response.socket?.destroySoon();
  }

  #flush(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
      this.response.write('', () => resolve());
    });
  }
}

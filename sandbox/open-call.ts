import type { ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Journal, JournalEntry } from './journal.ts';

/** Cuts that fall, sooner or later, at every place of an event: inside UTF-8 sequences and between CR and LF too. */
const CUT_SIZES = [1, 1, 2, 1, 3];

/**
 * A call that takes time to answer. It follows the client: once the client has left (or the answer has been sent),
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

  /** Waits that long, or until the call is closed. */
  pause(milliseconds: number): Promise<void> {
    if (milliseconds <= 0 || this.closed) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wake = resolve;
      this.#timer = setTimeout(resolve, Math.ceil(milliseconds));
    });
  }

  /** Waits until the client leaves. */
  silence(): Promise<void> {
    if (this.closed) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  /** Writes a part of the answer; resolves when the client has read enough for more to be written. */
  write(part: string | Buffer): Promise<void> | undefined {
    if (this.closed || this.response.write(part)) return undefined;
    return new Promise((resolve) => {
      this.#wake = resolve;
      this.response.once('drain', resolve);
    });
  }

  /** Writes a part of the answer in many small writes, each in a turn of its own. */
  async writeInCuts(part: Buffer): Promise<void> {
    for (let start = 0, cut = 0; start < part.length && !this.closed; cut += 1) {
      const end = start + (CUT_SIZES[cut % CUT_SIZES.length] as number);
      await this.write(part.subarray(start, end));
      await nextTurn();
      start = end;
    }
  }

  /**
   * Notes that the call has met its fault.
   * @param ends true: the end of the call is the fault's doing, not the client's.
   */
  meetFault(kind: string, ends: boolean): void {
    this.entry.fault = kind;
    this.#endedByFault = ends;
  }

  /** Resets the connection, once what was written before has been handed to the network. */
  async reset(): Promise<void> {
    if (this.response.headersSent && !this.closed) await this.#flush();
    this.response.socket?.resetAndDestroy();
  }

  /** Closes the connection in the middle of the answer. */
  async cut(): Promise<void> {
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

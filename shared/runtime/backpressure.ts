import type { AccountBandwidth } from './account-bandwidth.ts';

/** Characters that may wait to be written. */
const pendingLimit = 256 * 1024;

/**
 * When the reading of an answer must pause: while too much of it waits to be written, and until its account may take more of this
 * process.
 */
export class Backpressure {
  readonly #bandwidth: Pick<AccountBandwidth, 'take'>;
  readonly #account: string;
  /** Characters that wait to be written. */
  #pending = 0;
  /** When the account may take more, in ms of `performance.now()`. */
  #resumeAt = 0;
  #resting: NodeJS.Timeout | undefined;
  #onDrained: (() => void)[] = [];
  #isClosed = false;

  constructor({
    bandwidth,
    account,
  }: { readonly bandwidth: Pick<AccountBandwidth, 'take'>; readonly account: string }) {
    this.#bandwidth = bandwidth;
    this.#account = account;
  }

  get pending(): number {
    return this.#pending;
  }

  /** Whether the reading must pause. */
  get isFull(): boolean {
    return this.#pending >= pendingLimit || (this.#resumeAt > 0 && this.#resumeAt > performance.now());
  }

  /** A frame was read, and waits to be written. */
  add(characters: number): void {
    this.#pending += characters;
    this.count(characters);
  }

  /** A frame was read. */
  count(characters: number): void {
    this.#resumeAt = Math.max(this.#resumeAt, this.#bandwidth.take(this.#account, characters));
  }

  /** Frames have been written. */
  remove(characters: number): void {
    this.#pending -= characters;
    this.#drain();
  }

  /** Resolves when reading may go on, or has ended. */
  drained(): Promise<void> {
    if (this.#isClosed || !this.isFull) return Promise.resolve();
    this.#rest();
    return new Promise((resolve) => this.#onDrained.push(resolve));
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#resting);
    this.#drain();
  }

  #rest(): void {
    const ms = this.#resumeAt - performance.now();
    if (ms <= 0 || this.#resting !== undefined) return;
    this.#resting = setTimeout(() => {
      this.#resting = undefined;
      this.#drain();
    }, Math.ceil(ms));
  }

  #drain(): void {
    if (this.#isClosed || !this.isFull) for (const resolve of this.#onDrained.splice(0)) resolve();
    // A frame may have come since the rest began.
    else if (this.#onDrained.length > 0) this.#rest();
  }
}

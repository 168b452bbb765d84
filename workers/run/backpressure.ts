import type { StreamBandwidth } from './stream-bandwidth.ts';

/** Characters that may wait to be appended before the vendor is paused. */
const pendingLimit = 256 * 1024;

/**
 * When the vendor of a stream must pause: while too much of its answer waits to be written, and until its account may take more of
 * this worker.
 */
export class Backpressure {
  readonly #bandwidth: Pick<StreamBandwidth, 'take'>;
  readonly #account: string;
  /** Characters that wait to be written. */
  #pending = 0;
  /** When the account may take more, in ms of `performance.now()`. */
  #resumeAt = 0;
  #resting: NodeJS.Timeout | undefined;
  #onDrained: (() => void)[] = [];
  #isClosed = false;

  constructor({ bandwidth, account }: { readonly bandwidth: Pick<StreamBandwidth, 'take'>; readonly account: string }) {
    this.#bandwidth = bandwidth;
    this.#account = account;
  }

  get pending(): number {
    return this.#pending;
  }

  /** Whether the vendor must pause. */
  get isFull(): boolean {
    return this.#pending >= pendingLimit || (this.#resumeAt > 0 && this.#resumeAt > performance.now());
  }

  /** A frame waits to be written. */
  add(characters: number): void {
    this.#pending += characters;
    this.#resumeAt = Math.max(this.#resumeAt, this.#bandwidth.take(this.#account, characters));
  }

  /** Frames have been written. */
  remove(characters: number): void {
    this.#pending -= characters;
    this.#drain();
  }

  /** Resolves when the vendor may go on, or the stream has been closed. */
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

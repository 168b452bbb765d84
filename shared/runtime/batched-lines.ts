import { write, writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { DestinationStream } from 'pino';

const stdout = 1;
/** Characters of one write, unless more wait. */
const batchCharacters = 64_000;
const batchMs = 1000;
/** Characters that may wait for stdout; so many may be in the write under way. */
const maxWaiting = 8 * 1024 * 1024;
/** How long `flush` waits for stdout, in ms. */
const flushMs = 2000;
/** Pause after stdout could take nothing at once, in ms. */
const retryMs = 20;

/** Writes what waits. Resolves to whether stdout has taken it, or failed to, within two seconds. */
export type Flush = () => Promise<boolean>;

/**
 * Lines for stdout, in larger writes, one at a time. pino's own destination keeps what is not taken without bound, measures its
 * whole buffer at every line, takes an error of stdout for one of the process, and at exit waits for it for ever.
 */
export class BatchedLines implements DestinationStream {
  readonly #onDropped: (lines: number) => void;
  #lines: string[] = [];
  #characters = 0;
  #isWriting = false;
  #dropped = 0;

  /** @param onDropped called when stdout takes lines again, with how many it has not taken */
  constructor(onDropped: (lines: number) => void) {
    this.#onDropped = onDropped;
    setInterval(() => this.#write(), batchMs).unref();
    process.on('exit', () => this.#writeAtExit());
  }

  write(line: string): void {
    if (this.#characters + line.length > maxWaiting) {
      this.#dropped++;
      return;
    }
    this.#lines.push(line);
    this.#characters += line.length;
    if (this.#characters >= batchCharacters) this.#write();
  }

  async flush(): Promise<boolean> {
    const deadline = AbortSignal.timeout(flushMs);
    for (;;) {
      this.#write();
      if (!this.#isWriting) return true;
      if (deadline.aborted) return false;
      await delay(5);
    }
  }

  #take(): Buffer {
    const text = this.#lines.join('');
    this.#lines = [];
    this.#characters = 0;
    return Buffer.from(text);
  }

  #write(): void {
    if (this.#isWriting || this.#lines.length === 0) return;
    this.#isWriting = true;
    const lines = this.#lines.length;
    this.#writeBytes(this.#take(), lines);
  }

  /** Through the thread pool, because a pipe that is full would hold the process up. */
  #writeBytes(bytes: Buffer, lines: number): void {
    write(stdout, bytes, 0, bytes.length, null, (error, written) => {
      if (error === null && written < bytes.length) {
        this.#writeBytes(bytes.subarray(written), lines);
      } else if (error?.code === 'EAGAIN') {
        setTimeout(() => this.#writeBytes(bytes, lines), retryMs).unref();
      } else {
        this.#isWriting = false;
        if (error !== null) this.#dropped += lines;
        else this.#tellDropped();
        if (this.#characters >= batchCharacters) this.#write();
      }
    });
  }

  #tellDropped(): void {
    if (this.#dropped === 0) return;
    const lines = this.#dropped;
    this.#dropped = 0;
    this.#onDropped(lines);
  }

  /** The last lines of a process that ends without `flush`, such as one that cannot start. */
  #writeAtExit(): void {
    try {
      for (let rest = this.#take(); rest.length > 0; ) rest = rest.subarray(writeSync(stdout, rest));
    } catch {
      // Nobody is left to tell.
    }
  }
}

/** Reads something at an interval, and whenever it is asked to: one reading at a time, whose failures are told and not thrown. */
export class RepeatedRead {
  readonly #read: () => Promise<void>;
  readonly #onFailure: (error: unknown) => void;
  readonly #timer: NodeJS.Timeout;
  #reading: Promise<void> | undefined;

  /** Begins to read after the first interval; it keeps no process alive. */
  constructor(everyMs: number, read: () => Promise<void>, onFailure: (error: unknown) => void) {
    this.#read = read;
    this.#onFailure = onFailure;
    this.#timer = setInterval(() => void this.now(), everyMs);
    this.#timer.unref();
  }

  /** Reads now; resolves with the reading under way if there is one. */
  now(): Promise<void> {
    this.#reading ??= this.#read()
      .catch(this.#onFailure)
      .finally(() => {
        this.#reading = undefined;
      });
    return this.#reading;
  }

  /** Reads no more by itself. */
  close(): void {
    clearInterval(this.#timer);
  }
}

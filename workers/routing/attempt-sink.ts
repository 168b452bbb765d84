import type { FrameSink, VendorFrame } from '../vendors/vendor.ts';

/** Takes the frames of one call, and tells when there was a first one: from then on no other call may be made. */
export class AttemptSink implements FrameSink {
  readonly #sink: FrameSink;
  #hasWritten = false;
  #isClosed = false;
  #onBegun: (() => void) | undefined;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  /** Resolves when the first frame comes. */
  begun(): Promise<undefined> {
    return new Promise((resolve) => {
      this.#onBegun = () => resolve(undefined);
      if (this.#hasWritten) this.#onBegun();
    });
  }

  get hasWritten(): boolean {
    return this.#hasWritten;
  }

  write(frame: VendorFrame): boolean {
    // Nothing of a call that was given up may get in among the frames of the next.
    if (this.#isClosed) return true;
    if (!this.#hasWritten) {
      this.#hasWritten = true;
      this.#onBegun?.();
    }
    return this.#sink.write(frame);
  }

  drained(): Promise<void> {
    return this.#sink.drained();
  }

  /** Takes no more frames. */
  close(): void {
    this.#isClosed = true;
  }
}

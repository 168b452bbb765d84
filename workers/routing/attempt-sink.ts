import type { FrameSink, VendorFrame } from '../vendors/vendor.ts';

/** Takes the frames of one call and reports the first one: from then on no other call may be made. */
export class AttemptSink implements FrameSink {
  readonly #sink: FrameSink;
  #hasWritten = false;
  #isClosed = false;
  #onStarted: (() => void) | undefined;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  /** Resolves on the first frame. */
  started(): Promise<undefined> {
    return new Promise((resolve) => {
      this.#onStarted = () => resolve(undefined);
      if (this.#hasWritten) this.#onStarted();
    });
  }

  get hasWritten(): boolean {
    return this.#hasWritten;
  }

  write(frame: VendorFrame): boolean {
    // Frames of an abandoned call must not mix with those of the next.
    if (this.#isClosed) return true;
    if (!this.#hasWritten) {
      this.#hasWritten = true;
      this.#onStarted?.();
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

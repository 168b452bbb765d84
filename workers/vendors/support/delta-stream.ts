import { ApiError } from '../../../shared/errors.ts';
import type { Reading } from '../../http/exchange.ts';
import type { FrameSink } from '../vendor.ts';
import { interrupted } from './interrupted.ts';

/** One streamed answer: bytes of its body in, `delta` frames out. */
export abstract class DeltaStream {
  /** Whether reading has ended, whatever the vendor may still send. */
  protected isDone = false;
  /** Frames written so far. A call that fails before the first one may be repeated. */
  protected frames = 0;
  private readonly sink: FrameSink;
  private isFull = false;
  private reported: ApiError | undefined;

  constructor(sink: FrameSink) {
    this.sink = sink;
  }

  /** Takes bytes of the body. @throws ApiError the error that the vendor reports. */
  read(bytes: Buffer): Reading {
    this.take(bytes);
    if (this.isDone) return 'finished';
    if (!this.isFull) return undefined;
    this.isFull = false;
    return this.sink.drained();
  }

  /** Classifies a failure of the call. */
  failure(thrown: unknown): ApiError {
    const isFinal = this.frames === 0 || thrown === this.reported;
    return isFinal ? ApiError.from(thrown) : interrupted(thrown);
  }

  /** Parses bytes, and writes their deltas. */
  protected abstract take(bytes: Buffer): void;

  /** @param text JSON text of a `delta` frame. */
  protected write(text: string): void {
    this.frames += 1;
    if (!this.sink.write({ type: 'delta', text })) this.isFull = true;
  }

  /** Ends the call with the error that the vendor reports. */
  protected fail(error: ApiError): never {
    this.reported = error;
    throw error;
  }
}

import { ApiError } from '../../../shared/errors.ts';
import type { Reading } from '../../http/exchange.ts';
import type { FrameSink } from '../vendor.ts';
import { interrupted } from './interrupted.ts';

/** Bytes that a vendor may send without an answer in them, and how many it may send for each character of the answer. */
const maxUnused = 64 * 1024 * 1024;
const maxPerCharacter = 64;

/** One streamed answer: bytes of its body in, `delta` frames out. */
export abstract class DeltaStream {
  /** Whether reading has ended, whatever the vendor may still send. */
  protected isDone = false;
  /** Frames written so far. A call that fails before the first one may be repeated. */
  protected frames = 0;
  private readonly sink: FrameSink;
  private isFull = false;
  private reported: ApiError | undefined;
  /** Bytes that have become no frame. Some of them are kept until they do, so they are bounded, as frames are by their log. */
  private unused = 0;
  private readonly maxUnused: number;

  /** @param files how many files its events may carry that become no frames, beside the answer itself. */
  constructor(sink: FrameSink, files = 0) {
    this.sink = sink;
    this.maxUnused = maxUnused * (files + 1);
  }

  /** Whether a frame was written. */
  get hasBegun(): boolean {
    return this.frames > 0;
  }

  /** Takes bytes of the body. @throws ApiError the error that the vendor reports. */
  read(bytes: Buffer): Reading {
    this.unused += bytes.length;
    this.take(bytes);
    if (this.isDone) return 'finished';
    if (this.unused > this.maxUnused) {
      throw new ApiError('server_error', "The model's vendor sent too much that is no part of an answer.");
    }
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
    this.unused = Math.max(0, this.unused - maxPerCharacter * text.length);
    if (!this.sink.write({ type: 'delta', text })) this.isFull = true;
  }

  /** Ends the call with the error that the vendor reports. */
  protected fail(error: ApiError): never {
    this.reported = error;
    throw error;
  }
}

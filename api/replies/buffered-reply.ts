import type { ApiError } from '../../shared/errors.ts';
import { errorOf, type Frame, isTerminal } from '../../shared/jobs/append.ts';
import type { BodyShare } from '../bounds/body-shares.ts';
import type { FileSender, FrameReceiver } from './frame-receiver.ts';

/** A held answer: collects the frames of a job and makes one body of them at the end. */
export class BufferedReply<Body> implements FrameReceiver {
  /** The body; rejects with the ApiError that the job ended with. */
  readonly body: Promise<Body>;
  /** When the first frame arrived, in ms since 1970. */
  firstFrameAt: number | undefined;
  /** The blobs that frames came from. */
  readonly blobs: string[] = [];
  readonly files: FileSender | undefined;
  readonly #compose: (frames: readonly Frame[]) => Body;
  readonly #fromEnd: boolean;
  readonly #takesErrors: boolean;
  readonly #share: Pick<BodyShare, 'grow'> | undefined;
  readonly #frames: Frame[] = [];
  /** What was counted before it came. */
  #expected = 0;
  #resolve: (body: Body) => void = () => undefined;
  #reject: (error: unknown) => void = () => undefined;

  /**
   * @param fromEnd whether the end frame suffices: then no other is kept
   * @param takesErrors whether a failed answer has a body, too
   * @param share counts the answer, if it is one that may be read again and again
   * @param files whose body can be made of an end that stays in its file
   */
  constructor(
    compose: (frames: readonly Frame[]) => Body,
    fromEnd = false,
    takesErrors = false,
    share?: Pick<BodyShare, 'grow'>,
    files?: FileSender,
  ) {
    this.#compose = compose;
    this.#share = share;
    this.#fromEnd = fromEnd;
    this.#takesErrors = takesErrors;
    this.files = files;
    this.body = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // It may fail before anybody waits; later waits still get the error.
    this.body.catch(() => undefined);
  }

  expect(bytes: number): void {
    this.#share?.grow(bytes);
    this.#expected += bytes;
  }

  frame(frame: Frame): void {
    this.firstFrameAt ??= Date.now();
    if (frame.blob !== undefined) this.blobs.push(frame.blob);
    if (this.#share !== undefined && !this.#isCounted(frame)) return;
    if (frame.type === 'error' && !this.#takesErrors) {
      this.#reject(errorOf(frame));
      return;
    }
    if (isTerminal(frame) || !this.#fromEnd) this.#frames.push(frame);
    if (!isTerminal(frame)) return;
    try {
      this.#resolve(this.#compose(this.#frames));
    } catch (error) {
      this.#reject(error);
    }
  }

  /** Counts a frame, unless it was expected; false if there is no room for it. */
  #isCounted({ bytes, text }: Frame): boolean {
    const size = bytes?.length ?? text.length;
    const expected = Math.min(size, this.#expected);
    this.#expected -= expected;
    try {
      if (size > expected) this.#share?.grow(size - expected);
      return true;
    } catch (error) {
      this.#reject(error);
      return false;
    }
  }

  flush(): boolean {
    return true;
  }

  tick(): void {
    // Nothing is sent before the end.
  }

  /** Ends the wait with an external error: the caller disconnected, the process stops. */
  fail(error: ApiError): void {
    this.#reject(error);
  }
}

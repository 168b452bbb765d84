import type { ApiError } from '../../shared/errors.ts';
import type { Frame } from '../../shared/jobs/append.ts';

/** Which ends of answers are sent from their files. */
export interface FileSender {
  /** Whether one of so many bytes is not to be read into memory as a whole. */
  isLarge(bytes: number): boolean;
  /** Whether this one, which begins with these bytes, can be sent so. */
  canSend(end: Pick<Frame, 'seq'>, start: Buffer): boolean;
}

/** Receives the frames of one answer, in order, each exactly once. */
export interface FrameReceiver {
  frame(frame: Frame): void;
  /**
   * Called with the bytes of frames before they are read from files.
   * @throws ApiError if they are more than may be read now: then they are not, and the answer ends with it.
   */
  expect?(bytes: number): void;
  /** Whether it sends the end of an answer from its file: then no more of that is read than its beginning. */
  readonly files?: FileSender | undefined;
  /**
   * Called after each group of frames that arrived together, so that they are sent in one write. Returns false to pause;
   * `onDrain` resumes.
   */
  flush(): boolean;
  /** Set by its reader: called when it accepts frames again. */
  onDrain?: (() => void) | undefined;
  /** Whether the answer has begun to be sent; left out: it is sent whole. */
  readonly isOpen?: boolean;
  /** Called twice a second, for pings. */
  tick(now: number): void;
  /**
   * Ends the answer with an error other than the job's: it cannot be shown, or cannot be read further because its log or
   * state is gone. Nothing follows.
   */
  fail(error: ApiError): void;
}

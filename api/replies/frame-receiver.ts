import type { ApiError } from '../../shared/errors.ts';
import type { Frame } from '../../shared/jobs/frames.ts';

/** Receives the frames of one answer, in order, each exactly once. */
export interface FrameReceiver {
  frame(frame: Frame): void;
  /**
   * Called after each group of frames that came together, so that they can leave in one write. Returns false when it
   * wants no more for now; it calls `onDrain` to go on.
   */
  flush(): boolean;
  /** Set by its reader: to be called when it takes frames again. */
  onDrain?: (() => void) | undefined;
  /** Called twice a second, for pings. */
  tick(now: number): void;
  /**
   * Ends the answer with an error that is not the job's own: it cannot be shown, or cannot be read on because its log or
   * state is gone. Nothing comes after it.
   */
  fail(error: ApiError): void;
}

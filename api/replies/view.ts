import type { ApiError } from '../../shared/errors.ts';
import type { Frame } from '../../shared/jobs/frames.ts';

/** States of a job as callers see them. */
export type JobStatus = 'queued' | 'in_progress' | 'completed' | 'failed' | 'cancelled';

/** What a view may know of the job whose frames it shows. */
export interface ViewedJob<ViewOptions extends object = object> {
  readonly id: string;
  readonly model: string;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  /** What `parse` put there. */
  readonly viewOptions: ViewOptions;
  /** A link under which anybody can fetch a result file (by the id of its blob) for a time. */
  readonly link: (file: string) => string;
}

/**
 * How an endpoint shows the frames of a job. Pure: the same frames from the first on always make the same events, so that
 * a resumed stream continues with exactly the events that are missing.
 */
export interface View<ViewOptions extends object = object> {
  /** A new fold over the job's frames: for each frame the SSE events it becomes, each without its `id:` line and end. */
  stream(job: ViewedJob<ViewOptions>): (frame: Frame) => string[];
  /** The body of a held answer, from all frames of a job that ended well. */
  held(job: ViewedJob<ViewOptions>, frames: readonly Frame[]): string;
  /** Whether `held` needs the end frame only: then no other is kept for it. */
  readonly heldFromEnd?: boolean;
  /**
   * The fewest frames, the end last, from which `stream` and `held` show the whole of an answer that ended well: the
   * database keeps these (their `seq` is of no account). Where it is left out, all but progress are kept. A view that shows
   * errors is asked about answers that failed, too.
   */
  final?(frames: readonly Frame[], job: Pick<ViewedJob<ViewOptions>, 'id' | 'viewOptions'>): readonly Frame[];
  /** Content-Type of a held answer; undefined, or left out: JSON. */
  contentType?(job: ViewedJob<ViewOptions>): string | undefined;
  /**
   * The answer as bytes, where the request that makes the job is answered so. Everywhere else the job is shown by its
   * events, and by its held body.
   */
  bytes?(job: Pick<ViewedJob<ViewOptions>, 'viewOptions'>): BytesView | undefined;
  /**
   * Whether `resource` and the fold of `stream` show `error` frames, too (before the first event of a stream an error is a
   * status whatever this says). Left out: they are told by `errorEvent`.
   */
  readonly showsErrors?: boolean;
  /**
   * The event that tells an error once the status is out; left out: OpenAI's `data: {"error":…}`.
   * @param sequence how many events the fold has made before it
   */
  errorEvent?(error: ApiError, sequence: number): string;
  /**
   * Whether a stream opens before the job's first frame: the fold is given `openingFrame` first then, and every error is
   * told by an event. Left out: never.
   */
  opensAtOnce?(job: ViewedJob<ViewOptions>): boolean;
  /** What keeps a silent stream alive; left out: the comment `: ping`. */
  readonly ping?: string;
  /** Shows the job as a resource of its own; left out: it is none. */
  resource?(job: ViewedJob<ViewOptions>, state: ResourceState): Record<string, unknown>;
}

/** How far a job is that is a resource of its own (a response, a video). Times are milliseconds since 1970. */
export interface ResourceState {
  readonly status: JobStatus;
  /** Percent, a whole number. */
  readonly progress: number;
  readonly endedAt: number | undefined;
  /** How it failed. */
  readonly error: ApiError | undefined;
  /** What it has said, the end last; given once it has completed, and where the view shows errors, once it has failed. */
  readonly frames: readonly Frame[] | undefined;
}

/** An answer that is bytes. */
export interface BytesView {
  readonly contentType: string;
  /** The bytes that a frame adds. */
  readonly chunk: (frame: Frame) => Buffer | undefined;
  /** Id of the stored file that the `end` frame names: the whole answer, for when no other frame is left. */
  readonly file: (end: Frame) => string | undefined;
}

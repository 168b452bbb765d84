import type { Readable } from 'node:stream';
import type { Upload } from '../../shared/blobs/upload.ts';
import type { VideoVariant } from '../../shared/capabilities/video.ts';
import type { ApiError } from '../../shared/errors.ts';
import type { Frame } from '../../shared/jobs/frames.ts';
import type { Quantities } from '../../shared/money/cost.ts';

/** What a vendor is asked to do for one job. */
export interface VendorCall {
  /** The vendor's own name of the model. */
  readonly model: string;
  /** Whether the caller wants the answer as it grows. */
  readonly stream: boolean;
  /**
   * The request as JSON text, vendor-neutral (the capability's schema in shared/capabilities), without `model` and `stream`,
   * which the vendor sets itself; `stream_options`, if there are any, come first. Text, not an object: an OpenAI-shaped
   * vendor passes it on without parsing.
   */
  readonly request: string;
  /** Aborted when the caller left, the deadline passed, the job was fenced off or the worker gives up. */
  readonly signal: AbortSignal;
  /** Stays at most this long (ms) without a byte from the vendor before the call fails with `timeout`. */
  readonly silenceMs: number;
  /** The caller's files. The request names none of them: what it holds, the caller has written. */
  readonly uploads: readonly Upload[];
  /** Opens them, and takes the files that the answer brings. */
  readonly files: CallFiles;
}

/** A file that lies beside the job. */
export interface StoredFile {
  /** Id of its blob. */
  readonly file: string;
  /** Media type: `image/png`. */
  readonly type: string;
  readonly bytes: number;
}

/** Files of one call. */
export interface CallFiles {
  /** Opens an uploaded file; whoever opens it reads it to its end or destroys it. @throws Error when it is gone. */
  open(upload: Upload): Promise<{ readonly content: Readable; readonly bytes: number }>;
  /** Stores a file of the answer. It stays readable as long as results do. */
  save(content: Readable | Uint8Array, type: string): Promise<StoredFile>;
}

/** What is left of a frame when its place in the log is not yet known. */
export type VendorFrame = Pick<Frame, 'type' | 'text'>;

/**
 * Where a vendor puts what it hears. `write` takes frames in order; it answers false when the relay is full, and then
 * the vendor stops reading until `drained` resolves (backpressure reaches the vendor's socket).
 */
export interface FrameSink {
  write(frame: VendorFrame): boolean;
  drained(): Promise<void>;
}

/** Counts as the vendor reports them (OpenAI's `usage` object), or null where it reports none. */
export type VendorUsage = Record<string, unknown> | null;

/** How a vendor's call ended well. */
export interface VendorAnswer {
  /** JSON text of the `end` frame: the answer, or, where deltas have said it all, what remains: `{"usage": …}`. */
  readonly body: string;
  readonly usage: VendorUsage;
  /** What else it is paid by; left out where that is tokens only. */
  readonly quantities?: Quantities;
}

/** One thing a vendor can do. @throws ApiError for everything that went wrong, also for an answer that broke off. */
export type VendorMethod = (call: VendorCall, sink: FrameSink) => Promise<VendorAnswer>;

/**
 * One vendor (or one dialect spoken by many). Adapters leave out what a vendor lacks.
 */
export interface Vendor {
  readonly name: string;
  /**
   * A chat completion. Streamed: `delta` frames, each the vendor's chunk without `id`, `object`, `created`, `model` and
   * `usage`; the end holds the usage alone. Held: no frames; the end is the whole body without those fields.
   */
  readonly chat?: VendorMethod;
  /** A legacy text completion, for models that have no other. Frames as of chat, but with `text` in their choices. */
  readonly complete?: VendorMethod;
  /** Embeddings of the request's inputs, at most as many as the model's `batch`; frame shapes in capabilities/embedding. */
  readonly embed?: VendorMethod;
  /** Makes or changes images; request and frame shapes in capabilities/image. */
  readonly image?: VendorMethod;
  /** Writes down, or translates, what is said; request and frame shapes in capabilities/transcription. */
  readonly transcribe?: VendorMethod;
  /** Speaks a text; request and frame shapes in capabilities/speech. */
  readonly speak?: VendorMethod;
  /** A response by the vendor's own Responses API; request and frame shapes in capabilities/response. */
  readonly respond?: VendorMethod;
  /** Counts the input tokens of a chat request; the end's body is `{"input_tokens": n}`. */
  readonly countTokens?: VendorMethod;
  /** Videos, which a vendor makes as tasks. */
  readonly video?: VideoTasks;
  /**
   * Asks for something that costs nothing, to see whether the vendor takes the key; left out where it has nothing of that kind.
   * @throws ApiError as every call
   */
  readonly checkKey?: (call: Pick<VendorCall, 'signal' | 'silenceMs'>) => Promise<void>;
  /** Closes the connections. */
  close(): Promise<void>;
}

/** A call about a task that a vendor runs on its own. It goes without the job's request, which may be long. */
export type TaskCall = Pick<VendorCall, 'model' | 'signal' | 'silenceMs' | 'files'> & {
  /** The task, as `create` named it. */
  readonly task: string;
};

/** How far a vendor's task is. */
export type TaskState =
  | { readonly status: 'running'; readonly progress: number }
  | { readonly status: 'completed'; readonly size?: string; readonly seconds?: string }
  | { readonly status: 'failed'; readonly error: ApiError };

/**
 * How a vendor makes videos; request shape in capabilities/video. Every method makes one call, or few, and never waits for
 * the task. @throws ApiError for what went wrong with the call itself.
 */
export interface VideoTasks {
  /**
   * Begins a task and answers its name at the vendor's. It is never called twice for a job.
   * @throws ApiError `outcome_unknown` where the task may have begun and nobody can tell.
   */
  create(call: VendorCall): Promise<string>;
  /** How far the task is. @throws ApiError `not_found` where the vendor knows it no more. */
  poll(call: TaskCall): Promise<TaskState>;
  /**
   * Stores a file of a completed task; undefined where the vendor has no such variant.
   * @throws ApiError `request_too_large` where the file is too large to be stored, however often it is fetched.
   */
  fetch(call: TaskCall, variant: VideoVariant): Promise<StoredFile | undefined>;
  /** Lets the vendor forget a task that nobody wants any more; left out where it cannot. */
  discard?(call: TaskCall): Promise<void>;
}

/** A vendor that does have these methods. */
export type Offering<Method extends keyof Vendor> = Vendor & Required<Pick<Vendor, Method>>;

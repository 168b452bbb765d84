import type { Readable } from 'node:stream';
import type { Upload } from '../../shared/blobs/upload.ts';
import type { VideoVariant } from '../../shared/capabilities/video.ts';
import type { ApiError } from '../../shared/errors.ts';
import type { Frame } from '../../shared/jobs/append.ts';
import type { Quantities } from '../../shared/money/cost.ts';
import type { AnswerHolder } from '../http/answer-memory.ts';
import type { RequestBody } from './request-body.ts';

/** One job's call of a vendor. */
export interface VendorCall {
  /** The vendor's own name of the model. */
  readonly model: string;
  /** Whether the caller wants the answer streamed. */
  readonly stream: boolean;
  /**
   * The request as JSON text, vendor-neutral (the capability's schema in shared/capabilities), without `model` and `stream`,
   * which the vendor sets itself; `stream_options`, if present, come first. Not an object: an OpenAI-shaped vendor passes it on
   * without parsing.
   */
  readonly request: RequestBody;
  /** Whether the first frame of a stream says what its vendor has counted so far, as `usage`, if it says so: messages begin with it. */
  readonly beginsWithCounts?: true | undefined;
  /** Whether the effort is not in the caller's own words, as that of a message: it gives way where its vendor refuses it. */
  readonly isEffortTranslated?: true | undefined;
  /** How many requests, refused by the vendor, this one is in place of; left out: none. */
  readonly replaced?: number | undefined;
  /** Why the first of those was refused, which is the caller's own. */
  readonly refusal?: unknown;
  /** Whether an answer at the end of the conversation is the beginning of the new one, as in a message. */
  readonly isPrefilled?: true | undefined;
  /** Whether the vendor's adapter marks what its prompt cache is to keep, if the caller has marked nothing. */
  readonly addsCacheBreakpoints?: true | undefined;
  /** Whether the catalogue has prices of the route's prompt cache. Looked up only if the adapter is to mark it. */
  readonly hasCachePrices?: boolean | undefined;
  /** Aborted when the caller disconnected, the deadline passed, the job was fenced off or the worker gives up. */
  readonly signal: AbortSignal;
  /** Longest time (ms) without a byte from the vendor before the call fails with `timeout`. */
  readonly silenceMs: number;
  /** The caller's files. The request names none of them: it holds only what the caller has written. */
  readonly uploads: readonly Upload[];
  /** Opens the uploads, and stores the files of the answer. */
  readonly files: CallFiles;
  /** Counts fetched files that become a part of the request; left out: there is no bound. */
  readonly memory?: CallMemory | undefined;
  /** Has the answer while it comes in; left out where the job has several. */
  readonly run?: { openAnswer: OpenAnswer | undefined } | undefined;
  /** Keeps what the vendor answers until the job is over. */
  readonly holder?: AnswerHolder | undefined;
}

/** An answer that comes in. One that is cut off is charged by what its vendor has counted until then. */
export interface OpenAnswer {
  /** OpenAI's `usage` with all input, and the output so far; null if the vendor has counted none yet. */
  usageSoFar(): VendorUsage;
  /** Of a request that takes several calls: the inputs that count, by their indexes, which the vendor has been sent. Left out: all. */
  readonly inputsSent?: ReadonlySet<number>;
  /** Of such a request: the calls that the vendor has answered. */
  readonly answered?: readonly AnsweredCall[];
  /** What the vendor has counted of calls with other inputs. */
  readonly counted?: readonly NonNullable<VendorUsage>[];
}

/** A call of several that the vendor has answered, with the indexes of its inputs. */
export interface AnsweredCall {
  readonly usage: VendorUsage;
  readonly inputs: readonly number[];
}

/** A file stored beside the job. */
export interface StoredFile {
  /** Id of its blob. */
  readonly file: string;
  /** Media type: `image/png`. */
  readonly type: string;
  readonly bytes: number;
}

/** Files of one call. */
export interface CallFiles {
  /** Opens an uploaded file; the caller reads it to its end or destroys it. @throws Error when it is gone. */
  open(upload: Upload): Promise<{ readonly content: Readable; readonly bytes: number }>;
  /** Stores a file of the answer. It stays readable as long as results do. */
  save(content: Readable | Uint8Array, type: string): Promise<StoredFile>;
}

/** Room in this process's memory for what the links of one job lead to. */
export interface CallMemory {
  /** Counts bytes that are fetched, and kept. @throws ApiError 429 if its account has too many under way */
  addFile(bytes: number): void;
}

/** A frame without its position in the log, which is not yet known. */
export type VendorFrame = Pick<Frame, 'type' | 'text'>;

/**
 * Receives a vendor's output. `write` takes frames in order; it returns false when the relay is full, and then the vendor stops
 * reading until `drained` resolves (backpressure reaches the vendor's socket).
 */
export interface FrameSink {
  write(frame: VendorFrame): boolean;
  drained(): Promise<void>;
}

/** Counts as the vendor reports them (OpenAI's `usage` object), or null if it reports none. */
export type VendorUsage = Record<string, unknown> | null;

/** JSON on one line: text, or a long answer in UTF-8, in parts, as its vendor has sent them. */
export type AnswerBody = string | readonly Buffer[];

/** The answer of a successful vendor call. */
export interface VendorAnswer<Body extends AnswerBody = string> {
  /** The `end` frame: the answer, or, if the deltas contain it all, the rest: `{"usage": …}`. */
  readonly body: Body;
  /** What the bytes of the body lie in: released when the body is stored. Left out: nothing, or what others read, too. */
  readonly memory?: Buffer;
  readonly usage: VendorUsage;
  /** The usages of several calls, whose sum it is; left out: of one. */
  readonly calls?: readonly NonNullable<VendorUsage>[];
  /** Other billed quantities; omitted if only tokens are billed. */
  readonly quantities?: Quantities;
  /** What the vendor says of the service tier that it has used, as it came, of several calls in a set; left out: nothing. */
  readonly tier?: unknown;
}

/** The answer to a job, of one call of its vendor or of several. */
export type JobAnswer = VendorAnswer<AnswerBody>;

/** One method of a vendor. @throws ApiError for every failure, including an answer that broke off. */
export type VendorMethod = (call: VendorCall, sink: FrameSink) => Promise<VendorAnswer>;

/** A method for images, whose answers may be long. @throws ApiError for every failure. */
export type ImageMethod = (call: VendorCall, sink: FrameSink) => Promise<JobAnswer>;

/** The vectors of an embedding call in the order of its inputs: JSON without white space, as text or in UTF-8. */
export interface VendorEmbeddings {
  readonly vectors: readonly (string | Buffer)[];
  readonly usage: VendorUsage;
}

/** @throws ApiError for every failure, including an answer without exactly one vector for each index from 0. */
export type EmbeddingMethod = (call: VendorCall) => Promise<VendorEmbeddings>;

/** One vendor (or one dialect of many). Adapters omit methods that a vendor does not support. */
export interface Vendor {
  readonly name: string;
  /**
   * A chat completion. Streamed: `delta` frames, each the vendor's chunk without `id`, `object`, `created`, `model` and `usage`;
   * the end holds the usage alone. Not streamed: no frames; the end is the whole body without those fields.
   */
  readonly chat?: VendorMethod;
  /** A legacy text completion, for models that have no other. Frames like those of chat, but with `text` in their choices. */
  readonly complete?: VendorMethod;
  /** Embeddings of the request's inputs, at most as many as the model's `batch`. */
  readonly embed?: EmbeddingMethod;
  /** Creates or edits images; request and frame shapes in capabilities/image. */
  readonly image?: ImageMethod;
  /** Transcribes, or translates, speech; request and frame shapes in capabilities/transcription. */
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
   * Checks whether the vendor accepts the key, by a request that costs nothing; omitted if the vendor has no such request.
   * @throws ApiError like every call
   */
  readonly checkKey?: (call: Pick<VendorCall, 'signal' | 'silenceMs'>) => Promise<void>;
  /** Closes the connections. */
  close(): Promise<void>;
}

/** A call about a vendor's background task. It goes without the job's request, which may be long. */
export type TaskCall = Pick<VendorCall, 'model' | 'signal' | 'silenceMs' | 'files'> & {
  /** The task's name, from `create`. */
  readonly task: string;
};

/** The state of a vendor's task. */
export type TaskState =
  | { readonly status: 'running'; readonly progress: number }
  | { readonly status: 'completed'; readonly size?: string; readonly seconds?: string }
  | { readonly status: 'failed'; readonly error: ApiError };

/**
 * A vendor's video methods; request shape in capabilities/video. Every method makes one call, or few, and never waits for the
 * task. @throws ApiError for failures of the call itself.
 */
export interface VideoTasks {
  /**
   * Starts a task and returns the vendor's name for it. It is never called twice for a job.
   * @throws ApiError `outcome_unknown` if the task may have started, which cannot be determined.
   */
  create(call: VendorCall): Promise<string>;
  /** The task's state. @throws ApiError `not_found` if the vendor no longer knows it. */
  poll(call: TaskCall): Promise<TaskState>;
  /**
   * Stores a file of a completed task; undefined if the vendor has no such variant.
   * @throws ApiError `request_too_large` if the file is too large to store, however often it is fetched.
   */
  fetch(call: TaskCall, variant: VideoVariant): Promise<StoredFile | undefined>;
  /** Discards an unwanted task at the vendor; omitted if the vendor cannot. */
  discard?(call: TaskCall): Promise<void>;
}

/** A vendor that certainly has these methods. */
export type Offering<Method extends keyof Vendor> = Vendor & Required<Pick<Vendor, Method>>;

import type { Frame } from '../../shared/jobs/frames.ts';

/** What a vendor is asked to do for one job. */
export interface VendorCall {
  /** The vendor's own name of the model. */
  readonly model: string;
  /** Whether the caller wants the answer as it grows. */
  readonly stream: boolean;
  /**
   * The request as JSON text, vendor-neutral (OpenAI's chat shape), without `model`, `stream` and `stream_options`, which
   * the vendor sets itself. Text, not an object: an OpenAI-shaped vendor passes it on without parsing.
   */
  readonly request: string;
  /** Aborted when the caller left, the deadline passed, the job was fenced off or the worker gives up. */
  readonly signal: AbortSignal;
  /** Stays at most this long (ms) without a byte from the vendor before the call fails with `timeout`. */
  readonly silenceMs: number;
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

/** Token counts as the vendor reports them (OpenAI's `usage` object), or null where it reports none. */
export type VendorUsage = Record<string, unknown> | null;

/**
 * One vendor (or one dialect spoken by many). Adapters leave out what a vendor lacks.
 */
export interface Vendor {
  readonly name: string;
  /**
   * Asks for a chat completion. Streamed: `delta` frames, each the vendor's chunk without `id`, `object`, `created`,
   * `model` and `usage`; resolves with the end. Held: no frames; resolves with the whole body without those fields.
   * @returns `body` (JSON text of the `end` frame) and the usage.
   * @throws ApiError for everything that went wrong, also for an answer that broke off without its end.
   */
  chat(call: VendorCall, sink: FrameSink): Promise<{ body: string; usage: VendorUsage }>;
  /** Closes the connections. */
  close(): Promise<void>;
}

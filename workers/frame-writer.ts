import type { AccountBlobs } from '../shared/blobs/account-blobs.ts';
import { ApiError } from '../shared/errors.ts';
import { append, type Ownership } from '../shared/jobs/append.ts';
import { type FrameType, frameLine, oneLine } from '../shared/jobs/frames.ts';
import { inlineLimit } from '../shared/queue.ts';
import type { RedisClient } from '../shared/redis.ts';
import type { FrameSink, VendorFrame } from './vendors/vendor.ts';

/** Frames after the first wait so long for company: one script call per job and tick, not per token. */
const tickMs = 5;
/** Characters that may wait to be appended before the vendor is made to wait. */
const pendingLimit = 256 * 1024;
/** Characters a job's log may hold. A log is never trimmed, so a job that outgrows it ends with an error. */
const logLimit = 32 * 1024 * 1024;

/** The job whose frames are written, and who is told of what becomes of them. */
export interface FrameWriterOptions {
  readonly redis: RedisClient;
  /** Those of the job's account. */
  readonly blobs: AccountBlobs;
  readonly isCluster: boolean;
  readonly jobId: string;
  readonly attempt: number;
  /** Last sequence number that earlier attempts committed. */
  readonly lastSeq: number;
  /** How long the log may stay when nobody ends the job, in ms. */
  readonly lifetimeMs: number;
  /** The log has confirmed that the job is this attempt's. */
  readonly onConfirmed: () => void;
  /** The job is not this attempt's any more, or its log cannot be written. */
  readonly onLost: (reason: Exclude<Ownership, 'ok'> | ApiError) => void;
}

/**
 * Puts the frames of one attempt into the job's log, in order: the first at once, the rest joined per tick, one call
 * under way at a time. While Redis is away frames wait, up to a bound beyond which the vendor is made to wait.
 */
export class FrameWriter implements FrameSink {
  /** When the first frame was written, in ms of `performance.now()`. */
  firstFrameAt: number | undefined;
  /** The same in ms since 1970. */
  firstAt: number | undefined;
  frames = 0;
  /** Who serves the answer, as it stands at the head of each batch. */
  served = '';
  readonly #options: FrameWriterOptions;
  #lines: (string | Promise<string>)[] = [];
  #pendingSize = 0;
  #logSize = 0;
  #hasDelta = false;
  #committedSeq: number;
  #timer: NodeJS.Timeout | undefined;
  #appending: Promise<void> | undefined;
  #onDrained: (() => void)[] = [];
  #isClosed = false;

  constructor(options: FrameWriterOptions) {
    this.#options = options;
    this.#committedSeq = options.lastSeq;
  }

  /** Whether a delta was handed over: from then on the answer cannot be started anew. */
  get hasDelta(): boolean {
    return this.#hasDelta;
  }

  write(frame: VendorFrame): boolean {
    if (this.#isClosed) return false;
    this.#add(frame.type, frame.text);
    if (frame.type === 'delta') this.#hasDelta = true;
    if (this.firstFrameAt === undefined) {
      this.firstFrameAt = performance.now();
      this.firstAt = Date.now();
      this.#flush();
    } else {
      this.#scheduleFlush();
    }
    return this.#pendingSize < pendingLimit;
  }

  drained(): Promise<void> {
    if (this.#pendingSize < pendingLimit || this.#isClosed) return Promise.resolve();
    return new Promise((resolve) => this.#onDrained.push(resolve));
  }

  /** Resolves when the log has every frame that was written so far, or cannot take them. */
  async flushed(): Promise<void> {
    this.#flush();
    while (this.#appending !== undefined) {
      await this.#appending;
      this.#flush();
    }
  }

  /**
   * Takes no more frames and answers the lines that are still to be written, with the terminal one behind them: `finish`
   * writes them in the same step that ends the job.
   */
  async close(terminal: FrameType, text: string): Promise<{ lines: string; lineCount: number }> {
    await this.#stop();
    this.#add(terminal, text);
    const lines = await Promise.all(this.#lines);
    return { lines: lines.join('\n'), lineCount: lines.length };
  }

  /** Takes no more frames and forgets those not written. */
  async discard(): Promise<void> {
    await this.#stop();
    this.#lines = [];
  }

  async #stop(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const resolve of this.#onDrained.splice(0)) resolve();
    await this.#appending;
  }

  #add(type: FrameType, text: string): void {
    this.frames++;
    if (text.length <= inlineLimit) this.#lines.push(frameLine(type, text));
    else this.#lines.push(this.#blobLine(type, text));
    this.#pendingSize += text.length;
  }

  async #blobLine(type: FrameType, text: string): Promise<string> {
    const line = oneLine(text);
    const blob = await this.#options.blobs.put(line);
    return frameLine(type, JSON.stringify({ blob, bytes: Buffer.byteLength(line) }), true);
  }

  /** A tick from now, or from the end of the call under way: the vendor's next frames, often its last, come along. */
  #scheduleFlush(): void {
    if (this.#timer !== undefined || this.#appending !== undefined || this.#lines.length === 0 || this.#isClosed)
      return;
    this.#timer = setTimeout(() => this.#flush(), tickMs);
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#appending !== undefined || this.#lines.length === 0 || this.#isClosed) return;
    this.#appending = this.#append()
      .catch((error) => this.#options.onLost(ApiError.from(error)))
      .finally(() => {
        this.#appending = undefined;
        this.#scheduleFlush();
      });
  }

  async #append(): Promise<void> {
    const { redis, jobId, attempt, lifetimeMs, isCluster, onLost } = this.#options;
    const taken = this.#lines;
    const size = this.#pendingSize;
    this.#lines = [];
    const lines = await resolveLines(taken);
    const text = lines.join('\n');
    const firstSeq = this.#committedSeq + 1;
    const lastSeq = this.#committedSeq + lines.length;
    const ownership = await append(redis, {
      jobId,
      attempt,
      firstSeq,
      served: this.served,
      lastSeq,
      lines: text,
      hasDelta: this.#hasDelta,
      lifetimeMs,
      isCluster,
    });
    this.#committedSeq = lastSeq;
    this.#pendingSize -= size;
    // Of a frame that travels as a blob the log holds the reference only.
    this.#logSize += text.length;
    if (ownership === 'ok') this.#options.onConfirmed();
    else onLost(ownership);
    if (this.#logSize > logLimit) onLost(new ApiError('server_error', 'The answer is too long to be relayed.'));
    if (this.#pendingSize < pendingLimit) for (const resolve of this.#onDrained.splice(0)) resolve();
  }
}

/** Most batches hold no blob, and then nothing has to be awaited. */
function resolveLines(lines: (string | Promise<string>)[]): string[] | Promise<string[]> {
  return lines.every((line) => typeof line === 'string') ? (lines as string[]) : Promise.all(lines);
}

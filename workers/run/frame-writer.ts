import { ApiError } from '../../shared/errors.ts';
import { type AccountBandwidth, AccountPace, freeCharacters } from '../../shared/fairness/account-bandwidth.ts';
import { errorLine, type FrameType, maxFrames, type Ownership, type PublishedLines } from '../../shared/jobs/append.ts';
import { inlineLimit } from '../../shared/queue/queue.ts';
import type { AnswerBody, FrameSink, VendorFrame } from '../vendors/vendor.ts';
import type { Lacking } from './answer-journal.ts';
import {
  endLineOf,
  type FrameBlobs,
  type FrameLine,
  FrameLog,
  type FrameLogOptions,
  isInFile,
  lineOf,
  resolveLines,
  sizeOf,
  type WriteVerdict,
} from './frame-log.ts';

/**
 * Batch window for frames after the first: one batch per job and tick, not per token. All writers of a process share its ticks, so
 * that their batches go out together, as one entry of the journal.
 */
const tickMs = 5;
const due: FrameWriter[] = [];

function tick(): void {
  const writers = due.splice(0);
  for (const writer of writers) writer.flushDue();
}

/** Characters that may wait to be appended before the vendor is paused. */
const pendingLimit = 256 * 1024;

/** The frames that are written together with the end of an answer. */
export interface LastFrames {
  /** Frame lines, the terminal one last. */
  readonly lines: string;
  readonly lineCount: number;
  /** Sequence number of the first; undefined: the next number of the log, which lacks frames before it. */
  readonly firstSeq: number | undefined;
  readonly published?: PublishedLines | undefined;
}

/** The job whose frames are written, and callbacks about their outcome. */
export interface FrameWriterOptions extends FrameLogOptions {
  /** Takes frames over 64 KiB, as the job's account's. */
  readonly blobs: FrameBlobs;
  /** What the job's account may take of this worker. */
  readonly bandwidth: Pick<AccountBandwidth, 'accounts' | 'take'>;
  readonly account: string;
  /** The log has confirmed that this attempt owns the job. */
  readonly onConfirmed: () => void;
  /** This attempt no longer owns the job, or its log cannot be written. */
  readonly onLost: (reason: Exclude<Ownership, 'ok'> | ApiError) => void;
}

/**
 * Appends the frames of one attempt to the job's log, in order: the first at once, the rest batched per tick, one call at a
 * time. While Redis is away frames wait, up to a bound beyond which the vendor is paused. If frames cannot be written, none
 * follow them: the answer has failed, and ends with an error.
 */
export class FrameWriter implements FrameSink, Lacking {
  readonly jobId: string;
  /** When the first frame was written, in ms of `performance.now()`. */
  firstFrameAt: number | undefined;
  /** The same in ms since 1970. */
  firstAt: number | undefined;
  /** Frames of the vendor, its end among them. */
  frames = 0;
  /** Who serves the answer, as written at the head of each batch. */
  served = '';
  readonly #options: FrameWriterOptions;
  readonly #log: FrameLog;
  #lines: FrameLine[] = [];
  #pendingSize = 0;
  /** Of large frames, which few streams have. */
  #pace: AccountPace | undefined;
  #writtenSize = 0;
  #hasDelta = false;
  #isDue = false;
  #isAppending = false;
  /** The next frames go into the log, and all that it lacks with them. */
  #mustLog = false;
  #onAppended: (() => void)[] = [];
  #onDrained: (() => void)[] = [];
  #isClosed = false;
  #failure: ApiError | undefined;

  constructor(options: FrameWriterOptions) {
    this.#options = options;
    this.jobId = options.jobId;
    this.#log = new FrameLog(options, this);
  }

  /** Whether a delta was passed in: from then on the answer cannot be restarted. */
  get hasDelta(): boolean {
    return this.#hasDelta;
  }

  /** Why the log lacks frames that were passed in; undefined if it lacks none. */
  get failure(): ApiError | undefined {
    return this.#failure;
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
    return this.#pendingSize < pendingLimit && this.#pace?.isResting !== true;
  }

  async drained(): Promise<void> {
    if (this.#pendingSize >= pendingLimit && !this.#isClosed) {
      await new Promise<void>((resolve) => this.#onDrained.push(resolve));
    }
    await this.#pace?.rested();
  }

  /** Resolves when the log has every frame written so far, or cannot take them. */
  async flushed(): Promise<void> {
    while (this.#isAppending || this.#hasUnlogged) {
      if (this.#isAppending) {
        await this.#appended();
      } else {
        this.#mustLog = true;
        this.#flush();
      }
    }
  }

  /** Brings the log up to what readers have, or at least up to the next frames: then it tells who reads them. */
  logNow(): void {
    this.#mustLog = true;
    if (this.#log.lacksFrames) this.#flush();
  }

  logLacking(): void {
    if (!this.#log.isLogging) this.logNow();
  }

  /** Appends the frames whose tick has come. */
  flushDue(): void {
    if (this.#isDue) this.#flush();
  }

  /**
   * Brings the log up to date, if the end will take a while to be written: it is in a file, or behind one, or an error, for which the
   * request is read.
   */
  async beforeEnd(body: AnswerBody | undefined): Promise<void> {
    const isSlow = body === undefined || sizeOf(body) > inlineLimit || this.#lines.some(isInFile);
    if (isSlow) await this.flushed();
  }

  /** Takes no more frames. Resolves when the call under way has finished: from then on `failure` is final. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#isDue = false;
    this.#pace?.close();
    this.#drain();
    if (this.#isAppending) await this.#appended();
  }

  /**
   * Returns the lines that a closed writer has not written, followed by the end: `finish` writes them in the step that ends
   * the job. Undefined if the answer has failed, which may only show here.
   */
  endWith(body: AnswerBody): Promise<LastFrames | undefined> {
    this.frames++;
    return this.#last(() => endLineOf(this.#options.blobs, body));
  }

  /** The same for an error, which replaces frames that could not be written. */
  async endWithError(error: ApiError): Promise<LastFrames> {
    const line = errorLine(error);
    return (await this.#last(() => line)) ?? { lines: line, lineCount: 1, firstSeq: undefined };
  }

  /** Reports that the log lacks frames that it had accepted: only an error may follow, which is returned. */
  lose(): ApiError {
    this.#failure ??= lostFrames(this.#hasDelta);
    return this.#failure;
  }

  /** Takes no more frames and drops those not written. */
  async discard(): Promise<void> {
    await this.close();
    this.#lines = [];
  }

  /** The run is over. @param hasEnded whether its job has ended, or is another's */
  leave(hasEnded: boolean): void {
    this.#log.leave(hasEnded);
  }

  async #last(terminal: () => FrameLine): Promise<LastFrames | undefined> {
    if (this.#failure !== undefined) return undefined;
    try {
      const { lines: unlogged, ...position } = this.#log.unlogged();
      const lines = await resolveLines([...unlogged, ...this.#lines, terminal()]);
      return { lines: lines.join('\n'), lineCount: lines.length, ...position };
    } catch (error) {
      this.#fail(lostFrames(this.#hasDelta, error));
      return undefined;
    }
  }

  #add(type: FrameType, text: string): void {
    this.frames++;
    this.#lines.push(lineOf(this.#options.blobs, type, text));
    this.#pendingSize += text.length;
    const { bandwidth, account } = this.#options;
    if (text.length > freeCharacters) {
      this.#pace ??= new AccountPace(bandwidth, account);
      this.#pace.take(text.length);
    } else bandwidth.accounts.see(account);
  }

  get #hasUnlogged(): boolean {
    return !this.#isClosed && (this.#lines.length > 0 || this.#log.lacksFrames);
  }

  /** Schedules a flush at the next tick, or after the call under way: the vendor's next frames, often its last, join it. */
  #scheduleFlush(): void {
    if (this.#isDue || this.#isAppending || this.#lines.length === 0 || this.#isClosed) return;
    this.#isDue = true;
    if (due.length === 0) setTimeout(tick, tickMs);
    due.push(this);
  }

  #flush(): void {
    this.#isDue = false;
    const isLacking = this.#mustLog && this.#log.lacksFrames;
    if (this.#isAppending || this.#isClosed || (this.#lines.length === 0 && !isLacking)) return;
    this.#isAppending = true;
    // A file takes a while to be written: the journal need not keep what precedes it for so long.
    if (this.#log.lacksFrames && this.#lines.some(isInFile)) {
      this.#mustLog = true;
      this.#append([], 0);
      return;
    }
    const size = this.#pendingSize;
    const lines = resolveLines(this.#lines);
    this.#lines = [];
    if (Array.isArray(lines)) this.#append(lines, size);
    else lines.then((resolved) => this.#append(resolved, size)).catch((error) => this.#takeVerdict(error, 0));
  }

  #append(lines: readonly string[], size: number): void {
    const how = { hasDelta: this.#hasDelta, mustLog: this.#mustLog };
    this.#mustLog = false;
    this.#log.append(lines, this.served, how, (verdict) => this.#takeVerdict(verdict, size));
  }

  /** Takes the verdict of an append of frames that have `size` characters. */
  #takeVerdict(verdict: WriteVerdict | Error, size: number): void {
    this.#isAppending = false;
    if (verdict instanceof Error) this.#fail(lostFrames(this.#hasDelta, verdict));
    else if (verdict === 'gap') this.#fail(lostFrames(this.#hasDelta));
    else if (verdict !== 'ok' && verdict !== 'written') this.#stop(verdict);
    else this.#commit(size, verdict === 'ok');
    for (const resolve of this.#onAppended.splice(0)) resolve();
    if (this.#mustLog) this.#flush();
    else this.#scheduleFlush();
  }

  #commit(size: number, isConfirmed: boolean): void {
    this.#pendingSize -= size;
    this.#writtenSize += size;
    if (isConfirmed) this.#options.onConfirmed();
    // Those in blobs, too: neither log nor blobs are trimmed while the job runs.
    if (this.#writtenSize > maxFrames) this.#fail(tooLong());
    else if (this.#pendingSize < pendingLimit) this.#drain();
  }

  /** Resolves when the call under way has its verdict. */
  #appended(): Promise<void> {
    return new Promise((resolve) => this.#onAppended.push(resolve));
  }

  #drain(): void {
    for (const resolve of this.#onDrained.splice(0)) resolve();
  }

  /** Later frames would hide the gap that lost frames leave. */
  #fail(failure: ApiError): void {
    if (this.#failure !== undefined) return;
    this.#failure = failure;
    this.#stop(failure);
  }

  #stop(reason: Exclude<Ownership, 'ok'> | ApiError): void {
    this.#isClosed = true;
    this.#lines = [];
    this.#pace?.close();
    this.#drain();
    this.#options.onLost(reason);
  }
}

/** The error for an answer with lost frames. */
function lostFrames(hasDelta: boolean, cause?: unknown): ApiError {
  const message = 'The answer broke off: a part of it could not be stored.';
  return new ApiError(hasDelta ? 'stream_interrupted' : 'server_error', message, cause === undefined ? {} : { cause });
}

function tooLong(): ApiError {
  return new ApiError('server_error', 'The answer is too long to be relayed.');
}

import { MissingBlobError } from '../../shared/blobs/blob-storage.ts';
import type { Blobs } from '../../shared/blobs/blobs.ts';
import { ApiError } from '../../shared/errors.ts';
import { hasLog, maxPage, readLogText } from '../../shared/jobs/answer-log.ts';
import { type Batch, type Frame, isTerminal, parseBatch, type StoredFrame } from '../../shared/jobs/frames.ts';
import { type JobIdentity, readJobProgress } from '../../shared/jobs/job-state.ts';
import { readServed, type Served } from '../../shared/jobs/settlement/served.ts';
import type { JobItem } from '../../shared/redis/job-id-map.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import type { FrameReceiver } from './frame-receiver.ts';
import { expired, lostJob } from './unreadable-answer.ts';

/** After so long without a live frame the log is read: a lost last frame leaves no gap to notice. */
const silenceMs = 5000;

/** After a log that could not be read it is left alone for so long: what has just failed would fail again at once. */
const retryMs = 1000;

/** What one reader reads for. */
export interface ReaderOptions {
  readonly sink: FrameReceiver;
  readonly onClose: (reader: AnswerReader) => void;
  /** Told who serves the answer, before its first frame, and again should that change. */
  readonly onServed?: ((served: Served) => void) | undefined;
  /** The answer is read by the request that made the job, to which a job that is gone was never its to resume. */
  readonly isCreator?: boolean | undefined;
}

/** What readers share. */
export interface ReaderContext {
  readonly redis: RedisClient;
  readonly blobs: Blobs;
  readonly log: Logger;
}

/**
 * Reads the answer of one job: a cursor, fed by live batches while they follow on, else by the log. A live batch is used
 * if and only if its first frame is the next one; in every other case (a gap, a slow client, a resume) it is dropped and
 * the log is read from the cursor. So memory is bounded, and no frame is lost or seen twice.
 */
export class AnswerReader implements JobItem<AnswerReader> {
  readonly jobId: string;
  next: AnswerReader | undefined;
  /** Whose frames they are: a frame over 64 KiB is a blob of its account. */
  readonly #account: string;
  readonly #context: ReaderContext;
  readonly #sink: FrameReceiver;
  readonly #onClose: ReaderOptions['onClose'];
  readonly #onServed: ReaderOptions['onServed'];
  readonly #isCreator: boolean;
  /** Who served the last batch, as it stood there. */
  #served = '';
  #cursor = 0;
  #lastHeardAt = Date.now();
  /** The receiver takes nothing yet (see `begin`), or no more for now. */
  #isPaused = true;
  #isReadingLog = false;
  /** There is, or may be, something in the log that was not delivered. */
  #isBehind = false;
  #isClosed = false;
  #failure: ApiError | undefined;
  /** Until then the log is left alone. */
  #retryAt = 0;
  /** The job has ended, and its end was not found in the log: nothing comes any more if it is not there now. */
  #isLastLook = false;
  /** Batches read from the log at a time: few for a sink that takes few, for what it leaves is read again. */
  #page = maxPage;
  /** The job is known to be there, so that finding nothing of it means that it is gone. */
  #hasBegun = false;
  /** How long the answer's caller waits. */
  #limits: { tick(): void } | undefined;

  constructor(
    job: Pick<JobIdentity, 'id' | 'account'>,
    context: ReaderContext,
    { sink, onClose, onServed, isCreator = false }: ReaderOptions,
  ) {
    this.jobId = job.id;
    this.#account = job.account;
    this.#context = context;
    this.#sink = sink;
    this.#onClose = onClose;
    this.#onServed = onServed;
    this.#isCreator = isCreator;
    sink.onDrain = () => this.resume();
  }

  /** Takes a live batch that stands in `text` from `start` on. */
  receive(text: string, start: number): void {
    if (this.#isClosed) return;
    this.#lastHeardAt = Date.now();
    if (this.#isReadingLog || this.#isPaused) {
      this.#isBehind = true;
      return;
    }
    const batch = this.#parse(text, start);
    if (batch === undefined) return;
    if (batch.firstSeq !== this.#cursor + 1) {
      if (batch.firstSeq > this.#cursor) this.catchUp();
      return;
    }
    if (batch.frames.some((frame) => frame.isBlob)) {
      this.catchUp();
      return;
    }
    this.#deliver(batch);
  }

  /** Why its frames could not be shown, where that is how it ended. */
  get failure(): ApiError | undefined {
    return this.#failure;
  }

  /**
   * The job is there, and the head of its answer is made up: frames are delivered from here on. Those that came before are
   * read from the log, so that none is kept in memory.
   * @param limits how long the caller waits; told the time as long as the answer is read
   */
  begin(limits?: { tick(): void }): void {
    this.#limits = limits ?? this.#limits;
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    this.#isPaused = false;
    if (this.#isBehind) this.catchUp();
  }

  /** Reads the log from the cursor; does nothing while that is under way or the sink is full. */
  catchUp(): void {
    this.#isBehind = true;
    if (this.#isReadingLog || this.#isPaused || this.#isClosed || Date.now() < this.#retryAt) return;
    this.#isReadingLog = true;
    this.#readLog()
      .catch((error) => {
        this.#retryAt = Date.now() + retryMs;
        this.#isBehind = true;
        this.#context.log.error({ err: error, job: this.jobId }, 'reading an answer failed');
      })
      .finally(() => {
        this.#isReadingLog = false;
        if (this.#isBehind && !this.#isPaused && !this.#isClosed) this.catchUp();
      });
  }

  /** Delivers a whole answer that is kept elsewhere than in the log: its frames, the terminal last. */
  replay(frames: readonly Frame[]): void {
    this.#deliver({ served: '', frames });
  }

  /** The sink takes frames again. */
  resume(): void {
    if (!this.#isPaused || !this.#hasBegun) return;
    this.#isPaused = false;
    this.catchUp();
  }

  /** To be called now and then: notices silence, and tries again what has failed. */
  tick(now: number): void {
    if (this.#isClosed) return;
    try {
      this.#limits?.tick();
      this.#sink.tick(now);
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (now - this.#lastHeardAt < silenceMs && !this.#isBehind) return;
    this.#lastHeardAt = now;
    this.catchUp();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#onClose(this);
  }

  async #readLog(): Promise<void> {
    let delivered = false;
    while (this.#isBehind && !this.#isPaused && !this.#isClosed) {
      this.#isBehind = false;
      const { entries, isLast } = await readLogText(this.#context.redis, this.jobId, this.#cursor, this.#page);
      if (!isLast) this.#isBehind = true;
      for (const [taken, text] of entries.entries()) {
        if (this.#isPaused || this.#isClosed) {
          this.#isBehind = true;
          this.#page = Math.max(1, taken);
          return;
        }
        const batch = this.#parse(text);
        if (batch === undefined) return;
        if (batch.firstSeq <= this.#cursor) continue;
        if (batch.firstSeq > this.#cursor + 1) {
          this.#lose();
          return;
        }
        await this.#deliverStored(batch);
        delivered = true;
      }
      this.#page = Math.min(maxPage, this.#page * 2);
    }
    if (this.#hasBegun && !delivered && !this.#isClosed && !this.#isPaused && !this.#isBehind) await this.#checkThere();
  }

  /** Nothing new in the log: make sure that something can still come. */
  async #checkThere(): Promise<void> {
    const progress = await readJobProgress(this.#context.redis, this.jobId);
    // Its end comes after all that this reader has, unless Redis has lost some of that (a failover): nothing comes then either.
    const isOver = progress === undefined || progress.hasEnded;
    if (!isOver || this.#isClosed) return;
    // The end may have been written between the two reads. A log that has it not is looked at once more, not for ever.
    if (progress !== undefined && !this.#isLastLook && (await hasLog(this.#context.redis, this.jobId))) {
      this.#isLastLook = true;
      this.#isBehind = true;
      return;
    }
    this.#lose();
  }

  /** Reads a batch; undefined where it is none that this process can read, which ends the answer. */
  #parse(text: string, start?: number): Batch | undefined {
    try {
      return parseBatch(text, start);
    } catch (error) {
      this.#fail(error);
      return undefined;
    }
  }

  /** The sink cannot go on: it is told, and nothing is read again, for what could not be shown once never can be. */
  #fail(thrown: unknown): void {
    if (this.#failure !== undefined) return;
    this.close();
    this.#failure = ApiError.from(thrown);
    this.#context.log.error({ err: thrown, job: this.jobId }, 'rendering an answer failed');
    try {
      this.#sink.fail(this.#failure);
    } catch (error) {
      this.#context.log.error({ err: error, job: this.jobId }, 'ending an answer that failed to render failed');
    }
  }

  #lose(): void {
    if (this.#isClosed) return;
    this.close();
    this.#sink.fail(this.#isCreator ? lostJob() : expired());
  }

  async #deliverStored(batch: Batch): Promise<void> {
    if (!batch.frames.some((frame) => frame.isBlob)) {
      this.#deliver(batch);
      return;
    }
    try {
      const frames = await Promise.all(batch.frames.map((frame) => this.#resolveBlob(frame)));
      if (!this.#isClosed) this.#deliver({ ...batch, frames });
    } catch (error) {
      if (!(error instanceof MissingBlobError)) throw error;
      this.#lose();
    }
  }

  async #resolveBlob(frame: StoredFrame): Promise<StoredFrame> {
    if (!frame.isBlob) return frame;
    const { blob } = JSON.parse(frame.text) as { blob: string };
    return { ...frame, text: await this.#context.blobs.ofRecords(this.#account).text(blob), isBlob: false };
  }

  /** A batch is delivered whole, also past a full sink: a batch is bounded, and cursors stay on its borders. */
  #deliver(batch: { readonly served: string; readonly frames: readonly Frame[] }): void {
    try {
      if (batch.served !== this.#served) this.#tellServed(batch.served);
      for (const frame of batch.frames) {
        this.#cursor = frame.seq;
        this.#sink.frame(frame);
        if (isTerminal(frame)) {
          this.close();
          break;
        }
      }
      if (!this.#sink.flush()) this.#isPaused = true;
    } catch (error) {
      this.#fail(error);
    }
  }

  #tellServed(text: string): void {
    this.#served = text;
    const served = readServed(text);
    if (served !== undefined) this.#onServed?.(served);
  }
}

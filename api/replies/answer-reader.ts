import { ApiError } from '../../shared/errors.ts';
import { type Batch, type Frame, isTerminal, parseBatch } from '../../shared/jobs/frames.ts';
import { type JobIdentity, readServed, type Served } from '../../shared/jobs/job-state.ts';
import type { JobItem } from '../../shared/runtime/collections.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { EarlyBatches } from './early-batches.ts';
import type { FrameReceiver } from './frame-receiver.ts';
import { StoredAnswer, type StoredAnswerDependencies } from './stored-answer.ts';
import { expired, lostJob } from './unreadable-answer.ts';

/** Time without a live frame after which a reader asks whether there is more: a lost last frame leaves no gap to notice. */
const silenceMs = 5000;

/** Delay after a failed read of the log, as an immediate retry would fail, too. */
const retryMs = 1000;

/** The options of one reader. */
export interface ReaderOptions {
  readonly sink: FrameReceiver;
  readonly onClose: (reader: AnswerReader) => void;
  /** Called with the vendor of the answer before its first frame, and again if it changes. */
  readonly onServed?: ((served: Served) => void) | undefined;
  /** Whether the request that made the job reads the answer. For it, a missing job is a lost request, not an expired answer. */
  readonly isCreator?: boolean | undefined;
}

/** Dependencies shared by readers. */
export interface ReaderContext extends StoredAnswerDependencies {
  readonly log: Logger;
}

/**
 * Reads the answer of one job: a cursor, fed by live batches while they are consecutive, else by the log. A live batch is
 * used if and only if its first frame is the next one; in every other case (a gap, a slow client, a resume) it is dropped
 * and the log is read from the cursor. So memory is bounded, and no frame is lost or delivered twice.
 */
export class AnswerReader implements JobItem<AnswerReader> {
  readonly jobId: string;
  next: AnswerReader | undefined;
  readonly #account: string;
  readonly #context: ReaderContext;
  readonly #sink: FrameReceiver;
  readonly #onClose: ReaderOptions['onClose'];
  readonly #onServed: ReaderOptions['onServed'];
  readonly #isCreator: boolean;
  /** The vendor of the last batch, unparsed. */
  #served = '';
  #cursor = 0;
  #lastHeardAt = Date.now();
  /** It has asked since the last live batch. */
  #hasAsked = false;
  /** The receiver accepts no frames yet (see `begin`), or none for now. */
  #isPaused = true;
  #isReadingLog = false;
  /** The log has, or may have, undelivered frames. */
  #isBehind = false;
  #isClosed = false;
  #failure: ApiError | undefined;
  /** The log is not read before this time. */
  #retryAt = 0;
  /** The job is known to exist, so that finding nothing of it means that it is gone. */
  #hasBegun = false;
  readonly #early = new EarlyBatches();
  /** Of most answers nothing is read but what comes live. */
  #storedAnswer: StoredAnswer | undefined;
  /** Enforces how long the answer's caller waits. */
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

  /** Receives a live batch that starts at `start` in `text`. */
  receive(text: string, start: number): void {
    if (this.#isClosed) return;
    this.#lastHeardAt = Date.now();
    this.#hasAsked = false;
    if (this.#isReadingLog || (this.#isPaused && this.#hasBegun)) {
      this.#isBehind = true;
      return;
    }
    const batch = this.#parse(text, start);
    if (batch === undefined) return;
    if (!this.#hasBegun) {
      if (!this.#early.add(batch)) this.#isBehind = true;
      return;
    }
    const isNext = batch.firstSeq === this.#cursor + 1;
    if (isNext && !batch.frames.some((frame) => frame.isBlob)) this.#deliver(batch);
    else if (batch.firstSeq > this.#cursor) this.catchUp();
  }

  /** The error that ended the reading, if the frames could not be shown. */
  get failure(): ApiError | undefined {
    return this.#failure;
  }

  /**
   * Starts delivery, once the job exists and the head of its answer is decided. Frames that came before are delivered now,
   * or read from the log if there were too many to keep.
   * @param limits on the caller's wait, ticked while the answer is read
   */
  begin(limits?: { tick(): void }): void {
    this.#limits = limits ?? this.#limits;
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    this.#isPaused = false;
    for (const batch of this.#early.take()) {
      if (this.#isClosed) return;
      if (this.#isPaused) this.#isBehind = true;
      else if (batch.firstSeq === this.#cursor + 1) this.#deliver(batch);
    }
    if (this.#isBehind) this.catchUp();
  }

  /** Reads the log from the cursor; does nothing while a read is in progress or the sink is full. */
  catchUp(): void {
    this.#isBehind = true;
    if (this.#isReadingLog || this.#isPaused || this.#isClosed || Date.now() < this.#retryAt) return;
    this.#isReadingLog = true;
    this.#readLog()
      .catch((error) => this.#readLater(error))
      .finally(() => {
        this.#isReadingLog = false;
        if (this.#isBehind && !this.#isPaused && !this.#isClosed) this.catchUp();
      });
  }

  /** Delivers a whole answer from elsewhere than the log: its frames, the terminal last. */
  replay(frames: readonly Frame[]): void {
    if (!this.#isClosed) this.#deliver({ served: '', frames });
  }

  /** The sink accepts frames again. */
  resume(): void {
    if (!this.#isPaused || !this.#hasBegun) return;
    this.#isPaused = false;
    this.catchUp();
  }

  /**
   * Called periodically: detects silence, also after the clock was put back, and retries what failed.
   * @param isRound whether the readers that have been silent for longer ask now: together they cost Redis little
   */
  tick(now: number, isRound = true): void {
    if (this.#isClosed) return;
    try {
      this.#limits?.tick();
      this.#sink.tick(now);
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (this.#isBehind) {
      if (this.#isPaused) this.#stored.keep(now).catch((error) => this.#readLater(error));
      this.catchUp();
      return;
    }
    const isSilent = Math.abs(now - this.#lastHeardAt) >= silenceMs;
    if (!isSilent || this.#isPaused || (this.#hasAsked && !isRound)) return;
    this.#hasAsked = true;
    this.#checkProgress();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#onClose(this);
  }

  /** Reads the log if it has more than this reader got. Readers that are silent at the same time ask in few calls. */
  #checkProgress(): void {
    this.#stored.mayHaveMore(this.#cursor).then(
      (mayHaveMore) => {
        if (mayHaveMore) this.catchUp();
      },
      (error) => this.#readLater(error),
    );
  }

  get #stored(): StoredAnswer {
    this.#storedAnswer ??= new StoredAnswer({ id: this.jobId, account: this.#account }, this.#context);
    return this.#storedAnswer;
  }

  #readLater(error: unknown): void {
    this.#retryAt = Date.now() + retryMs;
    this.#isBehind = true;
    this.#context.log.error({ err: error, job: this.jobId }, 'reading an answer failed');
  }

  async #readLog(): Promise<void> {
    let delivered = false;
    while (this.#isBehind && !this.#isPaused && !this.#isClosed) {
      this.#isBehind = false;
      const { entries, isLast } = await this.#stored.read(this.#cursor);
      if (!isLast) this.#isBehind = true;
      for (const [accepted, text] of entries.entries()) {
        if (this.#isPaused || this.#isClosed) {
          this.#isBehind = true;
          this.#stored.accepted(accepted);
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
      this.#stored.accepted();
    }
    if (this.#hasBegun && !delivered && !this.#isClosed && !this.#isPaused && !this.#isBehind) await this.#checkThere();
  }

  /** Checks, after the log had nothing new, that frames may still follow. */
  async #checkThere(): Promise<void> {
    const following = await this.#stored.whatFollows();
    if (following === 'at_once') this.#isBehind = true;
    else if (following === 'nothing') this.#lose();
  }

  /** Parses a batch; undefined if this process cannot read it, which ends the answer. */
  #parse(text: string, start?: number): Batch | undefined {
    try {
      return parseBatch(text, start);
    } catch (error) {
      this.#fail(error);
      return undefined;
    }
  }

  /** Fails the sink and stops reading: frames that could not be shown once never can be. */
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

  #lose(error = this.#isCreator ? lostJob() : expired()): void {
    if (this.#isClosed) return;
    this.close();
    this.#sink.fail(error);
  }

  /** Tells the receiver of bytes that are to be read from a file. @throws ApiError what it refuses them with */
  expect(bytes: number): void {
    this.#sink.expect?.(bytes);
  }

  async #deliverStored(batch: Batch): Promise<void> {
    const whole = await this.#stored.whole(batch, (bytes) => this.expect(bytes));
    if (whole === undefined || whole instanceof ApiError) this.#lose(whole);
    else if (!this.#isClosed) this.#deliver(whole);
  }

  /** A batch is delivered whole, even to a full sink: its size is bounded, and cursors stay on batch boundaries. */
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

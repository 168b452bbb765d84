import { ApiError } from '../../shared/errors.ts';
import { type Batch, batchAfter, type Frame, isTerminal, parseBatch } from '../../shared/jobs/append.ts';
import { type JobIdentity, readServed, type Served } from '../../shared/jobs/job-state.ts';
import type { JobItem } from '../../shared/runtime/collections.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import type { FrameReceiver } from './frame-receiver.ts';
import { LiveBatches } from './live-batches.ts';
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
 * used if and only if it has the next frame, from that one on; in every other case (a gap, a slow client, a resume) it is dropped
 * and the log is read from the cursor. So memory is bounded, and no frame is lost or delivered twice. The log may lack the last
 * moment of what others got live: the next live batch shows that.
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
  /** Few answers need it. */
  #live: LiveBatches | undefined;
  /** Live batches were dropped that the log may lack for a moment. */
  #hasDropped = false;
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
    if (this.#isPaused && this.#hasBegun) {
      this.#drop();
      return;
    }
    const batch = this.#parse(text, start);
    if (batch === undefined) return;
    if (!this.#hasBegun || this.#isReadingLog) {
      this.#live ??= new LiveBatches();
      if (!this.#live.add(batch)) this.#drop(batch);
      return;
    }
    const next = batchAfter(batch, this.#cursor);
    if (next !== undefined && !next.frames.some((frame) => frame.isBlob)) this.#deliver(next);
    else if (next !== undefined || batch.firstSeq > this.#cursor) {
      this.#drop(batch);
      this.catchUp();
    }
  }

  /** A live batch is not used: it is to be read from the log, which has frames in files, the end, and all before them. */
  #drop(batch?: Batch): void {
    this.#isBehind = true;
    const isLogged = batch?.frames.some((frame) => frame.isBlob || isTerminal(frame)) === true;
    if (!isLogged) this.#hasDropped = true;
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
    this.#deliverLive();
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
        this.#deliverLive();
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
      // Before that the head of the answer is not decided, which the sink might send with its first ping.
      if (this.#hasBegun) this.#sink.tick(now);
    } catch (error) {
      this.#fail(error);
      return;
    }
    const isResting = this.#isReadingLog && this.#stored.isResting;
    if (this.#isBehind || isResting) {
      if (this.#isPaused || isResting) this.#stored.keep(now).catch((error) => this.#readLater(error));
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
    this.#storedAnswer?.close();
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
    const before = this.#cursor;
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
        const next = batchAfter(batch, this.#cursor);
        if (next !== undefined) {
          await this.#deliverStored(next);
        } else if (batch.firstSeq > this.#cursor) {
          this.#lose();
          return;
        }
      }
      this.#stored.accepted();
      if (isLast) this.#deliverLive();
      if (isLast && this.#hasDropped && !this.#isPaused && !this.#isClosed) await this.#askForRest();
    }
    const hasNothing = this.#cursor === before;
    if (this.#hasBegun && hasNothing && !this.#isClosed && !this.#isPaused && !this.#isBehind) await this.#checkThere();
  }

  /** Delivers the live batches that follow the cursor. */
  #deliverLive(): void {
    for (const batch of this.#live?.take() ?? []) {
      if (this.#isClosed) return;
      const next = batchAfter(batch, this.#cursor);
      if (next !== undefined && !this.#isPaused) this.#deliver(next);
      else if (next !== undefined || batch.firstSeq > this.#cursor) this.#drop(batch);
    }
  }

  /** The log may lack what was dropped until its worker is asked: the next read of it, or the next live batch, shows what there is. */
  async #askForRest(): Promise<void> {
    this.#hasDropped = false;
    const following = await this.#stored.askForRest();
    if (following === 'read_again') this.#isBehind = true;
    else if (following === 'just_asked') this.#hasDropped = true;
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
    const whole = await this.#stored.whole(batch, this.#sink);
    if (whole === undefined || whole instanceof ApiError) this.#lose(whole);
    else if (!this.#isClosed) this.#deliver(whole);
  }

  /** A batch is delivered whole, even to a full sink: its size is bounded. */
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

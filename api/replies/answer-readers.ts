import type { InboxListener } from '../../shared/jobs/inbox.ts';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import { JobIdMap } from '../../shared/runtime/collections.ts';
import { AnswerReader, type ReaderContext, type ReaderOptions } from './answer-reader.ts';
import type { FrameReceiver } from './frame-receiver.ts';

/** Interval of the readers' checks for silence. All share one timer: one for each would cost more than the check. */
const tickMs = 500;
/** Every so many of them the readers ask whose answers stay silent. */
const ticksOfRound = 10;
/** After a lost connection it may take other processes this long to be subscribed again, too. */
const restoringMs = 5000;

/** All answers that this process is reading, by job. */
export class AnswerReaders implements InboxListener {
  readonly #context: ReaderContext;
  readonly #readers = new JobIdMap<AnswerReader>();
  readonly #timer: NodeJS.Timeout;
  #ticks = 0;
  #restoredAt = Number.NEGATIVE_INFINITY;
  readonly #onClose = (reader: AnswerReader): void => this.#readers.delete(reader);

  constructor(context: ReaderContext) {
    this.#context = context;
    this.#timer = setInterval(() => this.#tick(), tickMs);
    this.#timer.unref();
  }

  /**
   * Registers a reader, from the first frame on. For a new job: before it is enqueued, then `begin`. For an existing job:
   * attach first, then `begin` and `catchUp`.
   */
  open(
    job: Pick<JobIdentity, 'id' | 'account'>,
    sink: FrameReceiver,
    options: Pick<ReaderOptions, 'onServed' | 'isCreator'> = {},
  ): AnswerReader {
    this.#context.bandwidth.accounts.see(job.account);
    const reader = new AnswerReader(job, this.#context, { ...options, sink, onClose: this.#onClose });
    this.#readers.add(reader);
    return reader;
  }

  frames(jobId: string, text: string, start: number): void {
    this.#readers.forEach(jobId, (reader) => reader.receive(text, start));
  }

  /** Whether this process's subscription has stood for a while, so that a process without one is not just reconnecting. */
  get isLongSubscribed(): boolean {
    return performance.now() - this.#restoredAt > restoringMs;
  }

  resubscribed(): void {
    this.#restoredAt = performance.now();
    for (const reader of this.#readers) reader.catchUp();
  }

  close(): void {
    clearInterval(this.#timer);
    for (const reader of this.#readers) reader.close();
  }

  #tick(): void {
    const now = Date.now();
    const isRound = ++this.#ticks % ticksOfRound === 0;
    for (const reader of this.#readers) reader.tick(now, isRound);
  }
}

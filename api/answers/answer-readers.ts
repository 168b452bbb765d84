import type { InboxListener } from '../../shared/jobs/inbox.ts';
import type { Served } from '../../shared/jobs/served.ts';
import { AnswerReader, type AnswerSink, type ReaderContext } from './answer-reader.ts';

/** How often readers look for silence. One timer for all: a timer each would cost more than the check. */
const tickMs = 500;

/** All answers that this process is reading, by job. */
export class AnswerReaders implements InboxListener {
  readonly #context: ReaderContext;
  readonly #readers = new Map<string, Set<AnswerReader>>();
  readonly #timer: NodeJS.Timeout;

  constructor(context: ReaderContext) {
    this.#context = context;
    this.#timer = setInterval(() => this.#tick(), tickMs);
    this.#timer.unref();
  }

  /**
   * Registers a reader, from the first frame on. For a new job: before it is enqueued; nothing else is needed. For a job
   * that is there already: attach first, then `catchUp`.
   */
  open(jobId: string, sink: AnswerSink, onServed?: (served: Served) => void): AnswerReader {
    const onClose = (closed: AnswerReader): void => this.#remove(closed);
    const reader = new AnswerReader(jobId, this.#context, { sink, onClose, onServed });
    const readers = this.#readers.get(jobId);
    if (readers === undefined) this.#readers.set(jobId, new Set([reader]));
    else readers.add(reader);
    return reader;
  }

  frames(jobId: string, text: string, start: number): void {
    const readers = this.#readers.get(jobId);
    if (readers === undefined) return;
    for (const reader of readers) reader.receive(text, start);
  }

  resubscribed(): void {
    for (const reader of this.#all()) reader.catchUp();
  }

  close(): void {
    clearInterval(this.#timer);
    for (const reader of this.#all()) reader.close();
  }

  #tick(): void {
    const now = Date.now();
    for (const reader of this.#all()) reader.tick(now);
  }

  *#all(): Iterable<AnswerReader> {
    for (const readers of this.#readers.values()) yield* readers;
  }

  #remove(reader: AnswerReader): void {
    const readers = this.#readers.get(reader.jobId);
    readers?.delete(reader);
    if (readers?.size === 0) this.#readers.delete(reader.jobId);
  }
}

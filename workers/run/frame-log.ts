import type { AccountBlobs } from '../../shared/blobs/blobs.ts';
import {
  type AppendVerdict,
  appendTo,
  type FrameType,
  frameLine,
  isBlobLine,
  type Journaling,
  oneLine,
  type PublishedLines,
} from '../../shared/jobs/append.ts';
import { maxUnlogged } from '../../shared/jobs/journal/write-journal.ts';
import { inlineLimit } from '../../shared/queue/queue.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import type { AnswerBody } from '../vendors/vendor.ts';
import type { AnswerJournal, Lacking } from './answer-journal.ts';

/** The job whose log it is. */
export interface FrameLogOptions {
  readonly redis: RedisClient;
  readonly isCluster: boolean;
  /** Left out on a Cluster. */
  readonly journal?: AnswerJournal | undefined;
  readonly jobId: string;
  readonly attempt: number;
  /** Last sequence number that earlier attempts committed. */
  readonly lastSeq: number;
  /** How long the log may stay if nothing ends the job, in ms. */
  readonly lifetimeMs: number;
}

/** Lines that a log lacks, for the step that ends the job. */
export interface UnloggedLines {
  readonly lines: readonly string[];
  /** Sequence number of the first of them and of those that follow. */
  readonly firstSeq: number;
  readonly published: PublishedLines | undefined;
}

/** What becomes of an append. `written`: readers have it, and the log gets it within a moment. */
export type WriteVerdict = AppendVerdict | 'written';

/**
 * The log of one attempt, and the journal that precedes it: an append goes into the log, or, once that has a delta, into the
 * worker's journal, which costs a fraction. Only the log tells whether the attempt still owns the job, so nothing that may be run
 * again (it has no delta yet) is in the journal only. One call at a time.
 */
export class FrameLog {
  readonly #options: FrameLogOptions;
  /** Last number in the log, and last one that readers have. */
  #loggedSeq: number;
  #publishedSeq: number;
  /** Lines between the two. */
  #unlogged: string[] = [];
  #unloggedSize = 0;
  /** Where the log's last append has said that frames may follow, and who reads them; '' if it has not. */
  #journalName = '';
  #readers: readonly string[] = [];
  readonly #lacking: Lacking;
  #isLeft = false;
  #isLogging = false;

  constructor(options: FrameLogOptions, lacking: Lacking) {
    this.#options = options;
    this.#loggedSeq = options.lastSeq;
    this.#publishedSeq = options.lastSeq;
    this.#lacking = lacking;
  }

  /** Whether readers have frames that the log lacks. */
  get lacksFrames(): boolean {
    return this.#unlogged.length > 0;
  }

  /** Whether an append to the log is under way. */
  get isLogging(): boolean {
    return this.#isLogging;
  }

  /**
   * Appends lines, after all before them.
   * @param mustLog the log itself must have them, and all before them
   */
  append(
    lines: readonly string[],
    served: string,
    { hasDelta, mustLog }: { readonly hasDelta: boolean; readonly mustLog: boolean },
    take: (verdict: WriteVerdict | Error) => void,
  ): void {
    const text = lines.length === 1 ? (lines[0] as string) : lines.join('\n');
    const { journal, jobId, attempt } = this.#options;
    if (journal === undefined || mustLog || !this.#mayJournal(journal, lines, text)) {
      this.#log(lines, served, hasDelta, take);
      return;
    }
    const firstSeq = this.#publishedSeq + 1;
    const message = `${jobId} ${attempt} ${firstSeq} ${served}\n${text}`;
    journal.write({ jobId, readers: this.#readers, message }, (entry) => {
      if (entry === undefined) {
        this.#log(lines, served, hasDelta, take);
        return;
      }
      if (!this.lacksFrames && !this.#isLeft) journal.keep(this.#lacking, entry);
      for (const line of lines) this.#unlogged.push(line);
      this.#unloggedSize += text.length;
      this.#publishedSeq += lines.length;
      take('written');
    });
  }

  /** What the log lacks. */
  unlogged(): UnloggedLines {
    return { lines: this.#unlogged, firstSeq: this.#loggedSeq + 1, published: this.#published };
  }

  /** The run is over. @param hasEnded whether its job has ended, or is another's: nobody looks for its frames */
  leave(hasEnded: boolean): void {
    this.#isLeft = true;
    this.#options.journal?.leave(this.#lacking, hasEnded);
  }

  /** Readers of a frame in a blob read the log. */
  #mayJournal(journal: AnswerJournal, lines: readonly string[], text: string): boolean {
    const isNamed = this.#journalName === journal.name && journal.isUsed;
    return isNamed && this.#unloggedSize + text.length <= maxUnlogged && !lines.some(isBlobLine);
  }

  get #published(): PublishedLines | undefined {
    if (!this.lacksFrames) return undefined;
    const bytes = this.#unlogged.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
    return { firstSeq: this.#publishedSeq + 1, bytes };
  }

  /** Appends what the log lacks, and new lines, to the log. */
  #log(
    lines: readonly string[],
    served: string,
    hasDelta: boolean,
    take: (verdict: WriteVerdict | Error) => void,
  ): void {
    const { redis, isCluster, journal, jobId, attempt, lifetimeMs } = this.#options;
    const all = this.lacksFrames ? [...this.#unlogged, ...lines] : lines;
    const firstSeq = this.#loggedSeq + 1;
    const lastSeq = this.#loggedSeq + all.length;
    const name = journal?.name ?? '';
    const position = hasDelta && journal?.isUsed && !this.#isLeft ? journal.join(jobId) : undefined;
    const call = {
      jobId,
      attempt,
      firstSeq,
      served,
      lastSeq,
      lines: all.length === 1 ? (all[0] as string) : all.join('\n'),
      hasDelta,
      lifetimeMs,
      isCluster,
      published: lines.length > 0 ? this.#published : this.#lastPublished,
      journal: position,
    };
    this.#isLogging = true;
    appendTo(redis, call, (reply) => {
      this.#isLogging = false;
      const isJournaled = typeof reply === 'object' && !(reply instanceof Error);
      if (reply !== 'ok' && !isJournaled) {
        take(reply);
        return;
      }
      this.#logged(lastSeq, isJournaled ? reply : undefined, name);
      take('ok');
    });
  }

  /** Readers that have all get the last line once more: new ones learn from it that the log has what they lack. */
  get #lastPublished(): PublishedLines | undefined {
    const last = this.#unlogged.at(-1) ?? '';
    const bytes = (this.#published?.bytes ?? 0) - Buffer.byteLength(last) - 1;
    return { firstSeq: this.#publishedSeq, bytes };
  }

  #logged(lastSeq: number, journaling: Journaling | undefined, name: string): void {
    this.#loggedSeq = lastSeq;
    this.#publishedSeq = lastSeq;
    this.#unlogged = [];
    this.#unloggedSize = 0;
    this.#options.journal?.release(this.#lacking);
    // A reader that accepts one batch a message is of a release that looks for frames in logs only.
    const isKnown = journaling?.readers.every((reader) => reader.endsWith('+')) === true;
    this.#readers = isKnown ? journaling.readers : [];
    this.#journalName = isKnown ? name : '';
  }
}

/** Where frames over 64 KiB are put. */
export type FrameBlobs = Pick<AccountBlobs, 'put'>;

/** A line of the log; a promise while its frame is put into a file, which fails if that does. */
export type FrameLine = string | Promise<string>;

/** The line of a frame. */
export function lineOf(blobs: FrameBlobs, type: FrameType, text: string): FrameLine {
  if (text.length <= inlineLimit) return frameLine(type, text);
  const whole = oneLine(text);
  const line = putLine(blobs, type, whole, Buffer.byteLength(whole));
  // The writer of the line handles a failure. Until then, or if the line is never written, it must not count as unhandled.
  line.catch(() => undefined);
  return line;
}

/** The line of the end of an answer. */
export function endLineOf(blobs: FrameBlobs, body: AnswerBody): FrameLine {
  if (typeof body === 'string') return lineOf(blobs, 'end', body);
  const bytes = sizeOf(body);
  return bytes <= inlineLimit
    ? lineOf(blobs, 'end', Buffer.concat(body).toString())
    : putLine(blobs, 'end', body, bytes);
}

async function putLine(blobs: FrameBlobs, type: FrameType, content: AnswerBody, bytes: number): Promise<string> {
  const blob = await blobs.put(content);
  return frameLine(type, JSON.stringify({ blob, bytes }), true);
}

/** Characters or bytes of a body. */
export function sizeOf(body: AnswerBody): number {
  return typeof body === 'string' ? body.length : body.reduce((length, part) => length + part.length, 0);
}

/** Whether a line's frame is put into a file. */
export function isInFile(line: FrameLine): boolean {
  return typeof line !== 'string';
}

/** Most batches hold no blob, and then nothing is awaited. */
export function resolveLines(lines: FrameLine[]): string[] | Promise<string[]> {
  return lines.some(isInFile) ? Promise.all(lines) : (lines as string[]);
}

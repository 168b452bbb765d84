import { writeJournal } from '../../shared/jobs/journal/write-journal.ts';
import { beforeNextWrite } from '../../shared/redis/command-batcher.ts';
import { journalKeys } from '../../shared/redis/keys.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { writtenVersion } from '../../shared/runtime/wire-version.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';

/** From this version on, processes know that the last frames of an answer may be in a journal only. */
const journalVersion = 2;

/** How long a log may lack frames that readers have. */
const lackingMs = 400;
const lookMs = 50;

/** How long the frames of a run are kept that has not ended its job: others do once its lease is over. */
const abandonedMs = 60_000;

/** How long its removal may take; what stays in Redis expires. */
const closeMs = 1000;

/** Characters of one entry, unless one job has more. */
const maxEntry = 1024 * 1024;

/** What lacks frames in its log. */
export interface Lacking {
  readonly jobId: string;
  /** Appends them, if that is not under way. */
  logLacking(): void;
}

/** Frames of a job for its readers. */
export interface JournalFrames {
  readonly jobId: string;
  readonly readers: readonly string[];
  /** `<job> <batch>`. */
  readonly message: string;
}

/** Called with the number of the entry; undefined: the frames are in none, and belong into the log. */
type TakeEntry = (entry: number | undefined) => void;

interface Waiting {
  readonly frames: JournalFrames;
  readonly take: TakeEntry;
}

/**
 * The journal of a worker: the frames that its streams get in one moment are one entry, and one message for each reader, where a
 * call for each stream would cost Redis many times as much. Each log gets its frames 0.4 s later, many at once; until
 * then the journal has them, for whoever ends the job if this worker dies. One entry is written at a time, each with the next
 * number: so Redis notices if it has lost some, and the frames go into the logs instead, which notice what they lack.
 */
export class AnswerJournal {
  readonly #redis: RedisClient;
  readonly #workerId: string;
  readonly #log: Logger;
  /** Of the journal: one that has lost entries is not continued. */
  #generation = 1;
  #nextEntry = 1;
  #waiting: Waiting[] = [];
  #isWriting = false;
  #isScheduled = false;
  #hasEntries = false;
  /** Jobs that may write into this journal, by their states. */
  readonly #jobs = new Set<string>();
  /** Those of them that others have ended, and ended ones that Redis may forget. */
  readonly #ended = new Set<string>();
  readonly #forgettable = new Set<string>();
  /** What is to be kept of this journal, in the order of the oldest entries. */
  readonly #lacking = new Map<Lacking, { readonly entry: number; readonly since: number }>();
  readonly #timer: NodeJS.Timeout;

  /** @param redis not a Cluster's client: the journal's keys are on one node, the jobs' on all */
  constructor(redis: RedisClient, workerId: string, log: Logger) {
    this.#redis = redis;
    this.#workerId = workerId;
    this.#log = log;
    this.#timer = setInterval(() => this.#look(), lookMs);
    this.#timer.unref();
  }

  /** Another one after entries were lost: what jobs' states say of the one before is of no use then. */
  get name(): string {
    return `${this.#workerId}-${this.#generation}`;
  }

  /** Whether all running processes know journals. */
  get isUsed(): boolean {
    return writtenVersion() >= journalVersion;
  }

  /** Where the next entry will be, for the state of a job that is about to write here. */
  join(jobId: string): string {
    this.#jobs.add(jobId);
    return `${journalKeys.entries(this.name)} ${this.#nextEntry}`;
  }

  /** Writes frames with the next entry, and publishes them. */
  write(frames: JournalFrames, take: TakeEntry): void {
    if (this.#ended.has(frames.jobId)) {
      take(undefined);
      return;
    }
    this.#waiting.push({ frames, take });
    if (this.#isWriting || this.#isScheduled) return;
    this.#isScheduled = true;
    beforeNextWrite(this.#redis, () => {
      this.#isScheduled = false;
      void this.#writeAll();
    });
  }

  /** Keeps the entries from this one on. Their frames are to be logged within a moment. */
  keep(lacking: Lacking, entry: number): void {
    this.#lacking.set(lacking, { entry, since: performance.now() });
  }

  /** The log has all frames. */
  release(lacking: Lacking): void {
    this.#lacking.delete(lacking);
  }

  /** The job writes no more here. @param hasEnded else someone else is yet to end it, and looks for its frames */
  leave(lacking: Lacking, hasEnded: boolean): void {
    this.#jobs.delete(lacking.jobId);
    this.#ended.delete(lacking.jobId);
    if (hasEnded) this.#lacking.delete(lacking);
    else setTimeout(() => this.#lacking.delete(lacking), abandonedMs).unref();
  }

  /** Removes the journal, unless a job is left that may need it. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    if (this.#lacking.size > 0) return;
    const removed = this.#redis
      .unlink(journalKeys.entries(this.name), journalKeys.head(this.name))
      .catch((error) => this.#log.warn({ err: error }, 'removing the journal of answers failed'));
    await withTimeout(removed, closeMs);
  }

  async #writeAll(): Promise<void> {
    if (this.#isWriting) return;
    this.#isWriting = true;
    while (this.#waiting.length > 0) await this.#writeSome(this.#takeSome());
    this.#isWriting = false;
  }

  #takeSome(): Waiting[] {
    let characters = 0;
    let count = 0;
    while (count < this.#waiting.length && characters < maxEntry) {
      const { message, readers } = (this.#waiting[count++] as Waiting).frames;
      characters += message.length * readers.length;
    }
    return this.#waiting.splice(0, count);
  }

  async #writeSome(some: readonly Waiting[]): Promise<void> {
    const entry = this.#nextEntry++;
    const ended = await this.#writeEntry(entry, some).catch((error) => {
      this.#log.warn({ err: error }, 'writing the journal of answers failed');
      return undefined;
    });
    if (ended === undefined) {
      // The states of those that wait name this journal, too.
      const waiting = this.#waiting;
      this.#begin();
      for (const one of [...some, ...waiting]) this.#give(one, undefined);
      return;
    }
    this.#hasEntries = true;
    for (const jobId of ended) {
      // From here on it is kept out here.
      this.#forgettable.add(jobId);
      if (this.#jobs.has(jobId)) this.#ended.add(jobId);
    }
    for (const one of some) this.#give(one, this.#ended.has(one.frames.jobId) ? undefined : entry);
    const late = this.#waiting.filter(({ frames }) => this.#ended.has(frames.jobId));
    if (late.length === 0) return;
    this.#waiting = this.#waiting.filter(({ frames }) => !this.#ended.has(frames.jobId));
    for (const one of late) this.#give(one, undefined);
  }

  /** Begins another journal: Redis has lost entries of this one, or it is not known whether it has the last one. */
  #begin(): void {
    this.#generation++;
    this.#nextEntry = 1;
    this.#waiting = [];
    this.#hasEntries = false;
    for (const ids of [this.#jobs, this.#ended, this.#forgettable]) ids.clear();
    // Their frames are logged with the next ones, and were kept by the journal before.
    for (const lacking of [...this.#lacking.keys()]) lacking.logLacking();
    this.#lacking.clear();
  }

  #give({ frames, take }: Waiting, entry: number | undefined): void {
    try {
      take(entry);
    } catch (error) {
      this.#log.error({ err: error, job: frames.jobId }, 'taking the outcome of a journal entry failed');
    }
  }

  async #writeEntry(number: number, some: readonly Waiting[]): Promise<readonly string[] | undefined> {
    const messages = new Map<string, string[]>();
    for (const { frames } of some) {
      for (const reader of frames.readers) {
        const batches = messages.get(reader);
        if (batches === undefined) messages.set(reader, [frames.message]);
        else batches.push(frames.message);
      }
    }
    const [oldest] = this.#lacking.values();
    const forgotten = [...this.#forgettable];
    this.#forgettable.clear();
    return await writeJournal(this.#redis, {
      journal: this.name,
      number,
      oldestNeeded: oldest?.entry ?? number,
      jobId: (some[0] as Waiting).frames.jobId,
      forgotten,
      messages,
    });
  }

  #look(): void {
    const now = performance.now();
    for (const [lacking, { since }] of this.#lacking) {
      if (now - since < lackingMs) break;
      lacking.logLacking();
    }
    if (this.#hasEntries && this.#lacking.size === 0 && !this.#isWriting && this.#waiting.length === 0) this.#empty();
  }

  /** What has been delivered, or deleted, is not to be found in an idle worker's journal. */
  #empty(): void {
    this.#hasEntries = false;
    this.#redis.xtrim(journalKeys.entries(this.name), 'MAXLEN', 0).catch(() => {
      this.#hasEntries = true;
    });
  }
}

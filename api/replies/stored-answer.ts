import { MissingBlobError } from '../../shared/blobs/blob-storage.ts';
import type { Blobs } from '../../shared/blobs/blobs.ts';
import { ApiError } from '../../shared/errors.ts';
import { type AccountBandwidth, AccountPace } from '../../shared/fairness/account-bandwidth.ts';
import { hasLog, type LogPage, maxPage, readLogText } from '../../shared/jobs/answer-log.ts';
import { type Batch, isTerminal, type StoredFrame } from '../../shared/jobs/append.ts';
import { attach } from '../../shared/jobs/attach.ts';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import { readJobProgress } from '../../shared/jobs/leases/leases.ts';
import { jobKeys } from '../../shared/redis/keys.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import { largeAnswer } from '../bounds/connections.ts';
import { readLargeEnd } from '../bounds/large-ends.ts';
import { bytesInBlob, leftInFile, withBlobs } from './blob-frame.ts';
import type { FrameReceiver } from './frame-receiver.ts';

/** Dependencies of `StoredAnswer`. */
export interface StoredAnswerDependencies {
  readonly redis: RedisClient;
  readonly blobs: Blobs;
  /** What an account may read of its logs. */
  readonly bandwidth: Pick<AccountBandwidth, 'accounts' | 'take'>;
  /** This process's name as a reader; left out if logs lack nothing that was published, as on a Cluster. */
  readonly readerId?: string | undefined;
}

/** How long the log of an ended job stays while a client is slow to read it, how often that is looked after, and how many times. */
const keptMs = 60_000;
const keepingMs = 20_000;
const maxKeeping = 12;

/** A worker is asked for the rest of a log no more often. */
const askingMs = 50;

/** What is stored of one job's answer: its log, page by page, the blobs of its large frames, and how far its job is. */
export class StoredAnswer {
  readonly #job: Pick<JobIdentity, 'id' | 'account'>;
  readonly #services: StoredAnswerDependencies;
  readonly #pace: AccountPace;
  /** Of an answer whose end waits for its turn: few do. */
  #closing: AbortController | undefined;
  /** Batches read at a time: few for a reader that accepts few, as the rest is read again. */
  #page = maxPage;
  /** The job has ended, and its end was not found in the log: if the next read does not find it, nothing will follow. */
  #isLastLook = false;
  #keepAt = 0;
  #keepings = 0;
  #askedAt = Number.NEGATIVE_INFINITY;

  /** @param job whose account has the blobs of frames over 64 KiB */
  constructor(job: Pick<JobIdentity, 'id' | 'account'>, services: StoredAnswerDependencies) {
    this.#job = job;
    this.#services = services;
    this.#pace = new AccountPace(services.bandwidth, job.account);
  }

  /** Whether the account may read no more for now: other accounts are served. */
  get isResting(): boolean {
    return this.#pace.isResting;
  }

  /** A page of the log after a cursor, as texts of batches, once the account may read more. */
  async read(cursor: number): Promise<LogPage> {
    await this.#pace.rested();
    const page = await readLogText(this.#services.redis, this.#job.id, cursor, this.#page);
    for (const entry of page.entries) this.#pace.take(entry.length);
    return page;
  }

  /** Adapts the next page to how many batches of the last one were accepted; left out: all. */
  accepted(batches?: number): void {
    this.#page = batches === undefined ? Math.min(maxPage, this.#page * 2) : Math.max(1, batches);
  }

  /**
   * A batch with the data of its blobs, once the account may read more; undefined if one of them is gone.
   * @param receiver is told of the bytes of each before it is read; what it throws to refuse them is returned
   */
  async whole(batch: Batch, receiver: Pick<FrameReceiver, 'expect' | 'files'>): Promise<Batch | ApiError | undefined> {
    if (!batch.frames.some(({ isBlob }) => isBlob)) return batch;
    try {
      await this.#pace.rested();
      const blobs = this.#services.blobs.ofRecords(this.#job.account);
      const frames: StoredFrame[] = [];
      for (const frame of batch.frames) frames.push((await leftInFile(frame, blobs, receiver)) ?? frame);
      for (const frame of frames) {
        const bytes = bytesInBlob(frame);
        receiver.expect?.(bytes);
        // The end of an answer is not taken: held answers have no other frame, and come as often as their requests.
        if (!isTerminal(frame)) this.#pace.take(bytes);
      }
      const read = () => withBlobs({ ...batch, frames }, blobs);
      const isLarge = frames.some((frame) => isTerminal(frame) && bytesInBlob(frame) > largeAnswer);
      if (!isLarge) return await read();
      this.#closing ??= new AbortController();
      return await readLargeEnd(this.#job.account, this.#closing.signal, read);
    } catch (error) {
      if (error instanceof ApiError) return error;
      if (!(error instanceof MissingBlobError)) throw error;
      return undefined;
    }
  }

  /** Nothing more is read. */
  close(): void {
    this.#pace.close();
    this.#closing?.abort();
  }

  /**
   * Called while the client does not accept what the log has, or may not read it yet: that of an ended job would expire meanwhile. A
   * client that reads nothing at all is disconnected, and one that reads forever gets no more than some minutes.
   */
  async keep(now: number): Promise<void> {
    if (now < this.#keepAt || this.#keepings >= maxKeeping) return;
    this.#keepAt = now + keepingMs;
    const log = jobKeys.log(this.#job.id);
    const leftMs = await this.#services.redis.pttl(log);
    // While the job runs, or where its answer is kept, the log stays for longer.
    if (leftMs < 0 || leftMs > keptMs - keepingMs) return;
    this.#keepings++;
    await this.#services.redis.pexpire(log, keptMs);
  }

  /**
   * Asks the job's worker to bring the log up to what it has published, see workers/run/answer-journal.ts.
   * @returns `read_again`: it may be up to date already; `just_asked`: it was asked a moment ago; `whole`: no log lacks anything
   */
  async askForRest(): Promise<'read_again' | 'just_asked' | 'whole'> {
    const { redis, readerId } = this.#services;
    if (readerId === undefined) return 'whole';
    if (performance.now() - this.#askedAt < askingMs) return 'just_asked';
    this.#askedAt = performance.now();
    await attach(redis, this.#job.id, readerId);
    return 'read_again';
  }

  /** Whether the log has, or may have, more than a reader at this cursor got. */
  async mayHaveMore(cursor: number): Promise<boolean> {
    const progress = await readJobProgress(this.#services.redis, { jobId: this.#job.id });
    return progress === undefined || progress.hasEnded || progress.seq > cursor;
  }

  /** Whether anything may follow a log that had nothing new: later, or found by another read at once; if not, the rest is lost. */
  async whatFollows(): Promise<'later' | 'at_once' | 'nothing'> {
    const { redis } = this.#services;
    const progress = await readJobProgress(redis, { jobId: this.#job.id });
    if (progress !== undefined && !progress.hasEnded) return 'later';
    // The end follows everything that a reader has. If Redis lost some of it (a failover), nothing follows either.
    if (progress === undefined || this.#isLastLook || !(await hasLog(redis, this.#job.id))) return 'nothing';
    // The end may have been written between the two reads. A log without it is read only once more.
    this.#isLastLook = true;
    return 'at_once';
  }
}

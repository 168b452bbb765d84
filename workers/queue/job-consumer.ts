import { setTimeout as delay, setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { jobIdOfEntry } from '../../shared/ids.ts';
import { type BeginVerdict, releaseLease } from '../../shared/jobs/attempt.ts';
import { settleMs } from '../../shared/jobs/settlement/settle.ts';
import { type ClaimCall, ClaimedQueue, type QueueEntry } from '../../shared/queue/claimed-queue.ts';
import type { QueuedJob } from '../../shared/queue/queue.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import { untilAccepted } from '../../shared/redis/script.ts';
import { SwapRemoveSet } from '../../shared/runtime/collections.ts';
import { isReadable, leaveUnread } from '../../shared/runtime/wire-version.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';
import { type Claim, ClaimKeeper } from './claim-keeper.ts';
import type { Consumer, JobConsumerOptions } from './consumer.ts';
import { ExtraClaims } from './extra-claims.ts';
import { quarantine } from './quarantine.ts';

/** Upper bound of jobs per claim: the reply carries their requests. */
const maxClaimed = 32;
/**
 * How long completed jobs wait for a claim to take them out of the queue: one that waits for jobs takes none. Their slots are free
 * before. As long as their settlement waits, so that both go out in one write.
 */
const completionBatchMs = settleMs;
/** From this many running jobs on, a successful claim is followed by a pause, so that the next one brings more jobs. */
const busy = 8;
const pauseMs = 2;
/** The same while several shards are consumed, each of which has fewer jobs. */
const sharedPauseMs = 16;
/** How long one wait for a job blocks its connection; well below that connection's `socketTimeout`. */
const blockSeconds = 5;
const retryMs = 1000;
/** How long a job of another version stays claimed. Its slot is lost to others meanwhile, and a shorter time costs Redis more. */
const unreadPauseMs = 500;
/** Delay before the removal of finished jobs is retried. */
const completionRetryMs = 250;
/**
 * How long a closing consumer waits for Redis: for claims under way, and then for the removal of finished jobs. A connection that
 * was lost when it was closed, or that returns only later, neither answers nor fails.
 */
const closeMs = 2000;

/** The outcome of a claim. */
interface ClaimReply {
  readonly count: number;
  /** More jobs wait. */
  readonly isMore: boolean;
  /** There was a marker but no jobs: another worker has them, or (if a Cluster has moved the queue) the marker arrived last. */
  readonly isLate: boolean;
}

/**
 * Claims the jobs of one BullMQ queue and runs several at a time. BullMQ's own Worker spends more on each job than the rest
 * of the job's path through Redis: two scripts of some forty commands. This class claims many jobs in one call, and the same
 * call removes many finished ones. It does not support delayed jobs: queues with such jobs use BullMQ's Worker.
 */
export class JobConsumer implements Consumer {
  readonly #options: JobConsumerOptions;
  readonly #queue: ClaimedQueue;
  readonly #waiting: RedisClient;
  readonly #running = new SwapRemoveSet<Claim>();
  readonly #keeper: ClaimKeeper;
  #extra: ExtraClaims | undefined;
  readonly #looping: Promise<void>;
  #ended: Claim[] = [];
  #flushTimer: NodeJS.Timeout | undefined;
  /** Removals of finished jobs under way. */
  #removing = 0;
  #claims = 0;
  readonly #closing = new AbortController();
  /** Claims that were not answered in time are given up: their jobs return as stalled. */
  #hasGivenUp = false;
  #wake: () => void = () => undefined;

  constructor(options: JobConsumerOptions) {
    this.#options = options;
    this.#queue = new ClaimedQueue(options.capability, options.shard);
    this.#waiting = options.waiting;
    this.#keeper = new ClaimKeeper(options, this.#queue, this.#running);
    this.#looping = this.#loop();
  }

  /** Stops claiming, and resolves when the running jobs have finished. It waits for Redis for a few seconds only. */
  async close(): Promise<void> {
    this.#closing.abort();
    // Replies that Redis has already sent are still read, so a job claimed at this moment is not lost.
    this.#waiting.disconnect();
    this.#wake();
    await withTimeout(this.#looping, closeMs);
    this.#hasGivenUp = true;
    while (this.#running.size > 0) await this.#change();
    await this.#removeLastEnded();
    await this.#keeper.close();
  }

  /** Removes the finished jobs that are left, also those whose removal is under way and fails. */
  async #removeLastEnded(): Promise<void> {
    const giveUpAt = performance.now() + closeMs;
    const leftMs = (): number => Math.max(0, giveUpAt - performance.now());
    while (this.#removing > 0 && leftMs() > 0) await withTimeout(this.#change(), leftMs());
    const removed = untilAccepted(() => this.#removeEnded(), leftMs()).catch((error) => this.#logUnremoved(error));
    await withTimeout(removed, leftMs());
  }

  async #loop(): Promise<void> {
    // The marker for waiting jobs may have been consumed by a worker that is gone.
    let waits = false;
    while (!this.#isClosing) {
      const { slots } = this.#options;
      try {
        if (slots.free === 0) {
          this.#extra ??= new ExtraClaims(this.#options, this.#queue);
          await slots.available(this.#closing.signal, this.#extra.waitMs);
          if (this.#extra.waitMs === 0 && !this.#isClosing) await this.#claimExtra(this.#extra);
          continue;
        }
        if (waits && slots.isShared) {
          waits = false;
          await this.#waitWithoutSlot();
          continue;
        }
        const { count, isMore, isLate } = await this.#claim(waits);
        waits = !isMore && !isLate;
        // Claimed jobs come first: their vendor calls go out before the next wait does.
        if (count > 0) await yieldToEventLoop();
        if (count > 0 && waits && slots.size - slots.free >= busy) {
          await this.#pause(slots.isShared ? sharedPauseMs : pauseMs);
          waits = false;
        }
      } catch (error) {
        if (this.#isClosing) return;
        this.#options.log.warn({ err: error, capability: this.#options.capability }, 'claiming jobs failed');
        waits = false;
        await this.#pause(retryMs);
      }
    }
  }

  /** Waits for jobs while other shards may use the slots. A marker that this worker cannot follow now is left to others. */
  async #waitWithoutSlot(): Promise<void> {
    const isMarked = await this.#queue.waitForJobs(this.#waiting, blockSeconds);
    const { slots, redis } = this.#options;
    if (isMarked && (slots.free === 0 || this.#isClosing)) await this.#queue.mark(redis);
  }

  /** Claims jobs of other accounts than the one that has most of the slots, if one has, for the extra slots. */
  async #claimExtra(extra: ExtraClaims): Promise<void> {
    const lockedUntil = performance.now() + this.#options.lockMs;
    const call = this.#newCall();
    const entries = await extra.claim(call);
    const give = (): void => this.#options.slots.giveExtra(1);
    if (!this.#hasGivenUp) for (const entry of entries) this.#begin(entry, { ...call, lockedUntil }, give);
  }

  #newCall(): Omit<ClaimCall, 'wanted' | 'ended'> {
    const { workerId, begins, lockMs, targetWaitMs, highShare } = this.#options;
    const token = `${workerId}:${++this.#claims}`;
    return { token, lockMs, targetWaitMs, highShare, workerId: begins ? workerId : '' };
  }

  /** Removes finished jobs, and claims as many as there are free slots. */
  async #claim(waits: boolean): Promise<ClaimReply> {
    const { slots } = this.#options;
    const offer = slots.offer(this.#isClosing ? 0 : maxClaimed);
    let used = 0;
    const lockedUntil = performance.now() + this.#options.lockMs;
    const newCall = this.#newCall();
    const ended = waits ? [] : this.#takeEnded();
    if (ended.length > 0) this.#removing++;
    try {
      const { redis } = this.#options;
      // Redis has both commands, so a job is claimed as soon as it arrives, without another round trip. Its slot is reserved: a
      // worker without one must not consume the marker for waiting jobs, which another worker may be waiting for.
      const marker = waits ? this.#queue.waitForJobs(this.#waiting, blockSeconds) : undefined;
      // A failed wait is reported after the jobs claimed behind it have started.
      marker?.catch(() => undefined);
      const { count: wanted, spare } = offer;
      const call = { ...newCall, wanted, spare, ended };
      const { isMore, entries } = await this.#queue.claim(waits ? this.#waiting : redis, call);
      if (this.#extra !== undefined) this.#extra.isMore = isMore;
      if (this.#hasGivenUp) return { count: 0, isMore, isLate: false };
      used = entries.length;
      for (const entry of entries) this.#begin(entry, { ...newCall, lockedUntil }, () => slots.give(1));
      const isLate = (await marker) === true && entries.length === 0;
      return { count: entries.length, isMore, isLate };
    } catch (error) {
      this.#putBack(ended);
      throw error;
    } finally {
      slots.settle(offer, used);
      if (ended.length > 0) this.#removing--;
      this.#wake();
    }
  }

  /** @param give returns its slot, once it has ended */
  #begin(entry: QueueEntry, { token, lockedUntil }: Pick<Claim, 'token' | 'lockedUntil'>, give: () => void): void {
    const { id, data, priority, stalled, verdict, parkedFor } = entry;
    const job = readQueuedJob(data);
    const account = typeof job === 'object' ? job.account : undefined;
    const claim: Claim = { id, token, index: 0, lockedUntil, account };
    this.#running.add(claim);
    const running =
      job === undefined
        ? quarantine(id, this.#options)
        : job === 'other_version'
          ? this.#leave(id, verdict)
          : this.#options.run({ job, token: claim.token, priority, stalled, verdict, parkedFor });
    running
      .then((outcome) => {
        if (outcome === 'requeued') return this.#keeper.requeue(claim);
        return outcome === 'parked' ? undefined : this.#end(claim);
      })
      .catch((error) => {
        this.#options.log.error(
          { err: error, job: jobIdOfEntry(id) },
          'starting a job failed; it will be claimed again',
        );
        this.#keeper.leave(claim);
      })
      .finally(() => {
        this.#running.delete(claim);
        give();
        this.#wake();
      });
  }

  /** Returns a job of another version to the queue, for a worker that can read it, after a pause in which others may run. */
  async #leave(id: string, verdict: BeginVerdict | undefined): Promise<'done' | 'requeued'> {
    leaveUnread('job');
    // Nothing is known of it: it was settled long ago.
    if (verdict?.verdict === 'drop') return 'done';
    if (verdict?.verdict === 'run') await releaseLease(this.#options.redis, jobIdOfEntry(id), verdict.attempt);
    await this.#pause(unreadPauseMs);
    return 'requeued';
  }

  #end(claim: Claim): void {
    this.#ended.push(claim);
    this.#scheduleFlush(completionBatchMs);
  }

  #scheduleFlush(ms: number): void {
    const flush = (): void => void this.#removeEnded().catch((error) => this.#logUnremoved(error));
    this.#flushTimer ??= setTimeout(flush, ms);
  }

  /**
   * Retries failed removals for as long as their locks may live, which are no longer renewed. After that the job returns as
   * stalled, and the worker that claims it finds it finished.
   */
  #putBack(ended: readonly Claim[]): void {
    const now = performance.now();
    for (const claim of ended) if (claim.lockedUntil > now) this.#ended.push(claim);
    if (this.#ended.length > 0 && !this.#isClosing) this.#scheduleFlush(completionRetryMs);
  }

  /** Takes the finished jobs for removal. */
  #takeEnded(): Claim[] {
    clearTimeout(this.#flushTimer);
    this.#flushTimer = undefined;
    const ended = this.#ended;
    this.#ended = [];
    return ended;
  }

  async #removeEnded(): Promise<void> {
    if (this.#ended.length > 0) await this.#claim(false);
  }

  #logUnremoved(error: unknown): void {
    this.#options.log.warn({ err: error }, 'removing ended jobs from their queue failed; retrying');
  }

  /** Resolves when a job or a claim has ended. */
  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  /** Resolves after `ms`, or earlier on close. */
  async #pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#closing.signal }).catch(() => undefined);
  }

  get #isClosing(): boolean {
    return this.#closing.signal.aborted;
  }
}

/** Parses a queued job; undefined for invalid text. */
function readQueuedJob(data: string): QueuedJob | 'other_version' | undefined {
  try {
    const job = JSON.parse(data) as QueuedJob | null;
    if (!isReadable(job?.v)) return 'other_version';
    return typeof job?.id === 'string' ? job : undefined;
  } catch {
    return undefined;
  }
}

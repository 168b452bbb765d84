import { setTimeout as delay, setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { Worker } from 'bullmq';
import { type BeginVerdict, readBeginReply, releaseLease } from '../../shared/jobs/attempt.ts';
import { ClaimedQueue, type QueueClaim, type QueueEntry } from '../../shared/queue/claimed-queue.ts';
import { jobIdOfEntry, queueOptions, readQueuedJob } from '../../shared/queue/queue.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import { untilAccepted } from '../../shared/redis/script.ts';
import { type SwapRemoveMember, SwapRemoveSet } from '../../shared/runtime/collections.ts';
import { leaveUnread } from '../../shared/runtime/wire-version.ts';
import type { Consumer, JobConsumerOptions } from './consumer.ts';

/** Upper bound of jobs per claim: the reply carries their requests. */
const maxClaimed = 32;
/** Batch window for completing jobs; the same call claims new ones. */
const completionBatchMs = 4;
/** From this many running jobs on, a successful claim is followed by a pause, so that the next one brings more jobs. */
const busy = 8;
const pauseMs = 2;
/** How long one wait for a job blocks its connection; well below that connection's `socketTimeout`. */
const blockSeconds = 5;
const retryMs = 1000;
/** How long a job of another version stays claimed. Its slot is lost to others meanwhile, and a shorter time costs Redis more. */
const unreadPauseMs = 500;
/** Delay before the removal of finished jobs is retried. */
const completionRetryMs = 250;
/** How long a closing consumer retries the removal of finished jobs while Redis refuses it. */
const closeRetryMs = 2000;

/** The outcome of a claim. */
interface ClaimReply {
  readonly count: number;
  /** More jobs wait. */
  readonly isMore: boolean;
  /** There was a marker but no jobs: another worker has them, or (if a Cluster has moved the queue) the marker arrived last. */
  readonly isLate: boolean;
}

/** A claim under way. */
interface Claim extends SwapRemoveMember, QueueClaim {
  /** When its job finished, in ms of `performance.now()`; 0 while it runs. */
  endedAt: number;
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
  /** Finds jobs whose worker was lost, and requeues them. */
  readonly #stalledCheck: Worker;
  readonly #renewing: NodeJS.Timeout;
  #renewal: Promise<void> | undefined;
  readonly #running = new SwapRemoveSet<Claim>();
  readonly #looping: Promise<void>;
  #ended: Claim[] = [];
  #flushTimer: NodeJS.Timeout | undefined;
  /** Slots reserved by claims under way. */
  #reserved = 0;
  #claims = 0;
  readonly #closing = new AbortController();
  #wake: () => void = () => undefined;

  constructor(options: JobConsumerOptions) {
    const { capability, redis, log, lockMs, stalledCheckMs, maxStalledCount } = options;
    this.#options = options;
    this.#queue = new ClaimedQueue(capability);
    this.#waiting = options.waiting;
    this.#stalledCheck = new Worker(
      capability,
      null,
      queueOptions(capability, redis, { autorun: false, stalledInterval: stalledCheckMs, maxStalledCount }),
    );
    this.#stalledCheck.on('error', (error) => log.warn({ err: error.message, capability }, 'queue'));
    this.#stalledCheck
      .startStalledCheckTimer()
      .catch((error) => log.error({ err: error, capability }, 'searching for stalled jobs failed'));
    // Redis may be away: renewals must not pile up.
    this.#renewing = setInterval(() => {
      this.#renewal ??= this.#renew().finally(() => {
        this.#renewal = undefined;
      });
    }, lockMs / 2);
    this.#looping = this.#loop();
  }

  /** Stops claiming, and resolves when the running jobs have finished. */
  async close(): Promise<void> {
    this.#closing.abort();
    // Replies that Redis has already sent are still read, so a job claimed at this moment is not lost.
    this.#waiting.disconnect();
    this.#wake();
    await this.#looping;
    while (this.#running.size > 0 || this.#reserved > 0) await this.#change();
    clearInterval(this.#renewing);
    await untilAccepted(() => this.#removeEnded(), closeRetryMs).catch((error) => this.#logUnremoved(error));
    await this.#stalledCheck.close();
  }

  async #loop(): Promise<void> {
    // The marker for waiting jobs may have been consumed by a worker that is gone.
    let waits = false;
    while (!this.#isClosing) {
      if (this.#free() === 0) {
        await this.#change();
        continue;
      }
      try {
        const { count, isMore, isLate } = await this.#claim(waits);
        waits = !isMore && !isLate;
        // Claimed jobs come first: their vendor calls go out before the next wait does.
        if (count > 0) await yieldToEventLoop();
        if (count > 0 && waits && this.#running.size >= busy) {
          await this.#pause(pauseMs);
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

  #free(): number {
    return this.#isClosing ? 0 : this.#options.concurrency - this.#running.size - this.#reserved;
  }

  /** Removes finished jobs, and claims as many as there are free slots. */
  async #claim(waits: boolean): Promise<ClaimReply> {
    const wanted = Math.min(maxClaimed, Math.max(0, this.#free()));
    const token = `${this.#options.workerId}:${++this.#claims}`;
    const ended = waits ? [] : this.#takeEnded();
    this.#reserved += wanted;
    try {
      const { redis, workerId, lockMs, begins, targetWaitMs } = this.#options;
      // Redis has both commands, so a job is claimed as soon as it arrives, without another round trip. Its slot is reserved: a
      // worker without one must not consume the marker for waiting jobs, which another worker may be waiting for.
      const marker = waits ? this.#queue.waitForJobs(this.#waiting, blockSeconds) : undefined;
      // A failed wait is reported after the jobs claimed behind it have started.
      marker?.catch(() => undefined);
      const call = { token, wanted, lockMs, targetWaitMs, workerId: begins ? workerId : '', ended };
      const { isMore, entries } = await this.#queue.claim(waits ? this.#waiting : redis, call);
      for (const entry of entries) this.#begin(entry, token);
      const isLate = (await marker) === true && entries.length === 0;
      return { count: entries.length, isMore, isLate };
    } catch (error) {
      this.#putBack(ended);
      throw error;
    } finally {
      this.#reserved -= wanted;
      this.#wake();
    }
  }

  #begin({ id, data, priority, stalled, refusal, beginReply }: QueueEntry, token: string): void {
    const claim = { id, token, index: 0, endedAt: 0 };
    this.#running.add(claim);
    const job = refusal === '' ? readQueuedJob(data) : undefined;
    const verdict = readVerdict(beginReply);
    const running =
      job === undefined
        ? this.#quarantine(id)
        : job === 'other_version'
          ? this.#leave(id, verdict)
          : this.#options.run({ job, token, priority, stalled, verdict });
    running
      .then((outcome) => (outcome === 'done' ? this.#end(claim) : this.#requeue(claim)))
      .catch((error) => {
        this.#options.log.error(
          { err: error, job: jobIdOfEntry(id) },
          'starting a job failed; it will be claimed again',
        );
      })
      .finally(() => {
        this.#running.delete(claim);
        this.#wake();
      });
  }

  /** Removes a job that is unreadable or has stalled too often, which would otherwise return forever. */
  async #quarantine(id: string): Promise<'done'> {
    const { log, capability } = this.#options;
    log.error({ job: id, capability }, 'queued job is unreadable or stalled too often; it is removed');
    return 'done';
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
    claim.endedAt = performance.now();
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
    const oldest = performance.now() - this.#options.lockMs;
    for (const claim of ended) if (claim.endedAt > oldest) this.#ended.push(claim);
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

  async #requeue(claim: Claim): Promise<void> {
    const { redis, lockMs, log } = this.#options;
    await untilAccepted(() => this.#queue.requeue(redis, claim), lockMs).catch((error) =>
      log.warn({ err: error }, 'requeueing a job failed; it returns as stalled'),
    );
  }

  /** A worker that was frozen for longer than `lockMs` loses its locks: the jobs' own leases decide who runs them. */
  async #renew(): Promise<void> {
    const { redis, lockMs, log } = this.#options;
    const running = [...this.#running];
    for (let at = 0; at < running.length; at += 500) {
      const some = running.slice(at, at + 500);
      await untilAccepted(() => this.#queue.renew(redis, some, lockMs), lockMs / 2).catch((error) =>
        log.warn({ err: error }, 'renewing locks failed'),
      );
    }
  }

  /** Resolves when a slot may have become free. */
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

/** An unreadable state yields undefined: the run then calls `begin` again and gets the reason. */
function readVerdict(reply: string): BeginVerdict | undefined {
  const verdict = reply === '' ? undefined : readBeginReply(reply);
  return verdict?.verdict === 'unreadable' ? undefined : verdict;
}

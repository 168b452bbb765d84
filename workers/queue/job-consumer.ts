import { setTimeout as delay, setImmediate as endOfTurn } from 'node:timers/promises';
import { Worker } from 'bullmq';
import type { Capability } from '../../shared/capabilities/capability.ts';
import { type BeginVerdict, readBeginReply } from '../../shared/jobs/begin.ts';
import { ClaimedQueue, type QueueClaim, type QueueEntry } from '../../shared/queue/claimed-queue.ts';
import { type QueuedJob, queueOptions, readQueuedJob } from '../../shared/queue/queue.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import { untilAccepted } from '../../shared/redis/redis-refusal.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { type SwapRemoveMember, SwapRemoveSet } from '../../shared/runtime/swap-remove-set.ts';
import type { Consumer } from './consumer.ts';

/** Jobs claimed in one call at most: their requests are in its reply. */
const maxClaimed = 32;
/** Batch window for completing jobs; the same call claims new ones. */
const overMs = 4;
/** With so many running jobs a claim that brought some is followed by a pause, so that the next one brings more. */
const busy = 8;
const pauseMs = 2;
/** How long one wait for a job blocks its connection; well under that connection's `socketTimeout`. */
const blockSeconds = 5;
const retryMs = 1000;
/** When removing what is over is tried again, where it has failed. */
const overRetryMs = 250;
/** How long a consumer that closes waits for Redis to let it take out what is over. */
const closingMs = 2000;

/** A job as it was claimed from the queue. */
export interface ClaimedJob {
  readonly job: QueuedJob;
  /** Names this very claim. */
  readonly token: string;
  /** BullMQ's priority; 0: it had none. */
  readonly priority: number;
  /** How often its worker was lost. */
  readonly stalled: number;
  /** What `begin` says of it, where it was asked in the same step. */
  readonly verdict: BeginVerdict | undefined;
}

export interface JobConsumerOptions {
  readonly capability: Capability;
  readonly redis: RedisClient;
  /** A connection of its own, which waiting for jobs blocks; closed with it. */
  readonly waiting: RedisClient;
  /** Unique among all processes. */
  readonly workerId: string;
  readonly concurrency: number;
  /** Jobs are begun as they are claimed, where their state is at hand. Only work that may be done twice: the answer may be lost. */
  readonly begins: boolean;
  readonly lockMs: number;
  readonly stalledCheckMs: number;
  readonly maxStalledCount: number;
  /**
   * Runs a job; returns whether it is over, or goes back to the queue. One that rejects is neither: it is claimed again once its
   * lock has run out, so often as a job may that loses its workers.
   */
  readonly run: (job: ClaimedJob) => Promise<'done' | 'requeued'>;
  readonly log: Logger;
}

/** What came of a claim. */
interface ClaimReply {
  readonly count: number;
  /** More wait. */
  readonly isMore: boolean;
  /** There was a marker, and no jobs: another one has them, or (a Cluster has moved the queue) the marker came last. */
  readonly isLate: boolean;
}

/** A claim under way. */
interface Claim extends SwapRemoveMember, QueueClaim {
  /** Since when it is over, in ms of `performance.now()`; 0 while it runs. */
  overSince: number;
}

/**
 * Takes the jobs of one BullMQ queue and runs them, some at a time. BullMQ's own Worker spends more on each job than the rest
 * of its way through Redis: two scripts of some forty commands. This one claims many in one call and takes out many that are
 * over in the same. Delayed jobs are left to BullMQ's Worker: queues that have them are its business.
 */
export class JobConsumer implements Consumer {
  readonly #options: JobConsumerOptions;
  readonly #queue: ClaimedQueue;
  readonly #waiting: RedisClient;
  /** Looks for jobs whose worker was lost, and puts them back. */
  readonly #stalledCheck: Worker;
  readonly #renewing: NodeJS.Timeout;
  #renewal: Promise<void> | undefined;
  readonly #running = new SwapRemoveSet<Claim>();
  readonly #looping: Promise<void>;
  #over: Claim[] = [];
  #overTimer: NodeJS.Timeout | undefined;
  /** Places promised to claims under way. */
  #promised = 0;
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
    // Redis may be away: renewals do not queue up before it.
    this.#renewing = setInterval(() => {
      this.#renewal ??= this.#renew().finally(() => {
        this.#renewal = undefined;
      });
    }, lockMs / 2);
    this.#looping = this.#loop();
  }

  /** Takes no more jobs, and resolves when those that run are over. */
  async close(): Promise<void> {
    this.#closing.abort();
    // What Redis has answered by now is still read: a job that was claimed in this moment is not lost.
    this.#waiting.disconnect();
    this.#wake();
    await this.#looping;
    while (this.#running.size > 0 || this.#promised > 0) await this.#change();
    clearInterval(this.#renewing);
    await untilAccepted(() => this.#takeOut(), closingMs).catch((error) => this.#logStaying(error));
    await this.#stalledCheck.close();
  }

  async #loop(): Promise<void> {
    // The marker that jobs wait may have been consumed by a worker that is gone.
    let waits = false;
    while (!this.#isClosing) {
      if (this.#free() === 0) {
        await this.#change();
        continue;
      }
      try {
        const { count, isMore, isLate } = await this.#claim(waits);
        waits = !isMore && !isLate;
        // Those that were claimed come first: their calls of vendors go out before the next wait does.
        if (count > 0) await endOfTurn();
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
    return this.#isClosing ? 0 : this.#options.concurrency - this.#running.size - this.#promised;
  }

  /** Takes out what is over, and takes as many as there are places for. */
  async #claim(waits: boolean): Promise<ClaimReply> {
    const wanted = Math.min(maxClaimed, Math.max(0, this.#free()));
    const token = `${this.#options.workerId}:${++this.#claims}`;
    const over = waits ? [] : this.#takeOver();
    this.#promised += wanted;
    try {
      const { redis, workerId, lockMs, begins } = this.#options;
      // Redis has both commands, so a job is claimed in the moment in which it comes, without another round trip. Its slot is
      // promised: who has none must not take the marker that jobs wait, for which another one may be waiting.
      const marker = waits ? this.#queue.waitForJobs(this.#waiting, blockSeconds) : undefined;
      // A wait that failed is reported once what was claimed behind it has begun.
      marker?.catch(() => undefined);
      const call = { token, wanted, lockMs, workerId: begins ? workerId : '', over };
      const { isMore, entries } = await this.#queue.claim(waits ? this.#waiting : redis, call);
      for (const entry of entries) this.#begin(entry, token);
      const isLate = (await marker) === true && entries.length === 0;
      return { count: entries.length, isMore, isLate };
    } catch (error) {
      this.#putBack(over);
      throw error;
    } finally {
      this.#promised -= wanted;
      this.#wake();
    }
  }

  #begin({ id, data, priority, stalled, refusal, begun }: QueueEntry, token: string): void {
    const claim = { id, token, place: 0, overSince: 0 };
    this.#running.add(claim);
    const job = refusal === '' ? readQueuedJob(data) : undefined;
    const running =
      job === undefined
        ? this.#quarantine(id)
        : this.#options.run({ job, token, priority, stalled, verdict: readVerdict(begun) });
    running
      .then((outcome) => (outcome === 'done' ? this.#end(claim) : this.#requeue(claim)))
      .catch((error) => {
        this.#options.log.error({ err: error, job: job?.id }, 'starting a job failed; it will be claimed again');
      })
      .finally(() => {
        this.#running.delete(claim);
        this.#wake();
      });
  }

  /** What cannot be read, or has been claimed again and again, would come back for ever. */
  async #quarantine(id: string): Promise<'done'> {
    const { log, capability } = this.#options;
    log.error({ job: id, capability }, 'queued job is unreadable or stalled too often; it is removed');
    return 'done';
  }

  #end(claim: Claim): void {
    claim.overSince = performance.now();
    this.#over.push(claim);
    this.#scheduleFlush(overMs);
  }

  #scheduleFlush(ms: number): void {
    this.#overTimer ??= setTimeout(() => void this.#flush(), ms);
  }

  /**
   * What could not be taken out is tried again, for as long as its lock may live, which nobody renews. After that it comes back
   * as stalled, and whoever takes it then finds that it is over.
   */
  #putBack(over: readonly Claim[]): void {
    const oldest = performance.now() - this.#options.lockMs;
    for (const claim of over) if (claim.overSince > oldest) this.#over.push(claim);
    if (this.#over.length > 0 && !this.#isClosing) this.#scheduleFlush(overRetryMs);
  }

  /** What is over, to be taken out. */
  #takeOver(): Claim[] {
    clearTimeout(this.#overTimer);
    this.#overTimer = undefined;
    const over = this.#over;
    this.#over = [];
    return over;
  }

  async #flush(): Promise<void> {
    await this.#takeOut().catch((error) => this.#logStaying(error));
  }

  async #takeOut(): Promise<void> {
    if (this.#over.length > 0) await this.#claim(false);
  }

  #logStaying(error: unknown): void {
    this.#options.log.warn({ err: error }, 'removing ended jobs from their queue failed; retrying');
  }

  async #requeue(claim: Claim): Promise<void> {
    const { redis, lockMs, log } = this.#options;
    await untilAccepted(() => this.#queue.requeue(redis, claim), lockMs).catch((error) =>
      log.warn({ err: error }, 'requeueing a job failed; it returns as stalled'),
    );
  }

  /** A worker that was frozen for longer than that loses its locks: the jobs' own leases decide who runs them. */
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

  /** Resolves when a place may have become free. */
  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  /** Waits, at most until the closing. */
  async #pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#closing.signal }).catch(() => undefined);
  }

  get #isClosing(): boolean {
    return this.#closing.signal.aborted;
  }
}

/** Where the state could not be read, whoever runs the job asks again, and is told why. */
function readVerdict(begun: string): BeginVerdict | undefined {
  const verdict = begun === '' ? undefined : readBeginReply(begun);
  return verdict?.verdict === 'unreadable' ? undefined : verdict;
}

import type { ClaimedQueue, QueueClaim } from '../../shared/queue/claimed-queue.ts';
import { untilAccepted } from '../../shared/redis/script.ts';
import type { SwapRemoveMember } from '../../shared/runtime/collections.ts';
import { writtenVersion } from '../../shared/runtime/wire-version.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';
import type { JobConsumerOptions } from './consumer.ts';

/** From this version on, all workers know a dead one by its report, so the locks of its claims need not be short. */
const reportingVersion = 2;
/** How much longer than a worker's report its locks live: they bound the time if its report is lost. */
const longerLocks = 6;
/** How long a closing keeper waits for Redis, which may be away: without its last word, the report ends by itself. */
const closeMs = 2000;

/** A claim under way. */
export interface Claim extends SwapRemoveMember, QueueClaim {
  /** Until when its lock lives, in ms of `performance.now()`, at least. */
  lockedUntil: number;
  /** Of its job; left out if that cannot be read. */
  readonly account?: string | undefined;
}

/**
 * Keeps the claims of one consumer. While it reports that its worker is alive, they are its own: one command for all of them. Each
 * has a lock besides. A new one lives no longer than the report, so that a job whose claim's reply was lost returns as soon as one
 * of a dead worker; the first renewal makes it long, and the next ones are seldom. While workers of the release before run, all are
 * short, since they know nothing else of a claim. Returns the jobs of dead workers to the queue.
 */
export class ClaimKeeper {
  readonly #options: JobConsumerOptions;
  readonly #queue: ClaimedQueue;
  readonly #claims: Iterable<Claim>;
  readonly #timers: readonly NodeJS.Timeout[];
  /** Claims that nothing here runs, and that others get once their locks have expired. */
  #left: Claim[] = [];
  #reportedAt = Number.NEGATIVE_INFINITY;
  #renewal: Promise<void> | undefined;
  #check: Promise<unknown> | undefined;

  constructor(options: JobConsumerOptions, queue: ClaimedQueue, claims: Iterable<Claim>) {
    this.#options = options;
    this.#queue = queue;
    this.#claims = claims;
    options.slots.claims.add(claims);
    // Redis may be away: calls must not pile up.
    const renew = (): void => {
      this.#renewal ??= this.#renew().finally(() => {
        this.#renewal = undefined;
      });
    };
    const check = (): void => {
      this.#check ??= this.#returnStalled().finally(() => {
        this.#check = undefined;
      });
    };
    this.#timers = [setInterval(renew, options.lockMs / 2), setInterval(check, options.stalledCheckMs)];
    renew();
  }

  /** Lifetime of the lock of a renewed claim, in ms. */
  get #renewedMs(): number {
    const { lockMs } = this.#options;
    const isReported = performance.now() - this.#reportedAt < lockMs;
    return isReported && writtenVersion() >= reportingVersion ? lockMs * longerLocks : lockMs;
  }

  /** Leaves a claimed job that nothing here runs to the next claim, as if its worker had died now. */
  leave(claim: Claim): void {
    this.#left.push(claim);
  }

  /** Requeues a claimed job as the next one. */
  async requeue(claim: Claim): Promise<void> {
    const { redis, lockMs, log } = this.#options;
    await untilAccepted(() => this.#queue.requeue(redis, claim), lockMs).catch((error) => {
      log.warn({ err: error }, 'requeueing a job failed; it returns as stalled');
      this.leave(claim);
    });
  }

  /** Ends the claims: what is left of them is returned at the next check of another worker. */
  async close(): Promise<void> {
    this.#options.slots.claims.delete(this.#claims);
    for (const timer of this.#timers) clearInterval(timer);
    await withTimeout(this.#reportLeaving(), closeMs);
  }

  async #reportLeaving(): Promise<void> {
    // A renewal that came later would report the worker as alive again.
    await Promise.all([this.#renewal, this.#check]);
    const { redis, workerId, lockMs, log } = this.#options;
    await this.#queue.renew(redis, { id: workerId, aliveMs: 0 }, [], lockMs).catch((error) => {
      log.warn({ err: error }, 'reporting that a worker has left failed');
    });
  }

  async #renew(): Promise<void> {
    const { redis, workerId, lockMs, log } = this.#options;
    const worker = { id: workerId, aliveMs: lockMs };
    const now = performance.now();
    const newLockMs = this.#renewedMs;
    const isDue = ({ lockedUntil }: Claim): boolean => newLockMs === lockMs || lockedUntil - now < (newLockMs * 2) / 3;
    const due = [...this.#claims].filter(isDue);
    const left = this.#left;
    try {
      await untilAccepted(() => this.#queue.renew(redis, worker, due, newLockMs), lockMs / 2);
      this.#reportedAt = now;
      for (const claim of due) claim.lockedUntil = now + newLockMs;
      if (left.length > 0) await this.#queue.renew(redis, worker, left, lockMs);
      this.#left = this.#left.slice(left.length);
    } catch (error) {
      // Their locks have expired by themselves.
      this.#left = this.#left.filter(({ lockedUntil }) => lockedUntil > now);
      log.warn({ err: error }, 'renewing claims failed');
    }
  }

  async #returnStalled(): Promise<void> {
    const { redis, capability, stalledCheckMs, maxStalledCount, log } = this.#options;
    try {
      await this.#queue.returnStalled(redis, stalledCheckMs, maxStalledCount);
    } catch (error) {
      log.warn({ err: error, capability }, 'searching for stalled jobs failed');
    }
  }
}

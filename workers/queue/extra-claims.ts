import type { ClaimCall, ClaimedQueue, QueueEntry } from '../../shared/queue/claimed-queue.ts';
import type { JobConsumerOptions } from './consumer.ts';

/** How often it looks: after it has found jobs, while jobs wait, and while none did when the queue was asked last. */
const lookMs = { found: 1, more: 3, none: 25 };
/** For how long after it has found jobs: an account that sends few sends the next of them when it has its answer. */
const foundMs = 250;

/**
 * Claims for the extra slots of a worker without a free slot: jobs of other accounts than the one that has most slots. Without them they
 * would wait until a job of that account ends, however long it takes.
 */
export class ExtraClaims {
  /** Whether jobs waited when the queue was last asked. */
  isMore = false;
  readonly #options: Pick<JobConsumerOptions, 'slots' | 'redis'>;
  readonly #queue: ClaimedQueue;
  #lookAt = 0;
  #foundAt = Number.NEGATIVE_INFINITY;

  constructor(options: Pick<JobConsumerOptions, 'slots' | 'redis'>, queue: ClaimedQueue) {
    this.#options = options;
    this.#queue = queue;
  }

  /** Until when it has looked of late enough, from now. */
  get waitMs(): number {
    return Math.max(0, this.#lookAt - performance.now());
  }

  /** Looks once. Each job that it returns has an extra slot, for `giveExtra` once it has ended. */
  async claim(call: Omit<ClaimCall, 'wanted' | 'beside' | 'ended'>): Promise<readonly QueueEntry[]> {
    const { slots, redis } = this.#options;
    const now = performance.now();
    const ms = now - this.#foundAt < foundMs ? lookMs.found : this.isMore ? lookMs.more : lookMs.none;
    this.#lookAt = now + ms;
    const beside = slots.dominant();
    const wanted = beside === undefined ? 0 : slots.offerExtra();
    if (wanted === 0) return [];
    let used = 0;
    try {
      const { isMore, entries } = await this.#queue.claim(redis, { ...call, wanted, beside, ended: [] });
      this.isMore = isMore;
      used = entries.length;
      if (used > 0) this.#foundAt = performance.now();
      return entries;
    } finally {
      slots.giveExtra(wanted - used);
    }
  }
}

import type { ClaimCall, ClaimedQueue, QueueEntry } from '../../shared/queue/claimed-queue.ts';
import type { JobConsumerOptions } from './consumer.ts';

/** How often it looks: while jobs wait, and while none did when the queue was asked last. */
const lookMs = { more: 3, none: 25 };

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
    this.#lookAt = performance.now() + (this.isMore ? lookMs.more : lookMs.none);
    const beside = slots.dominant();
    const wanted = beside === undefined ? 0 : slots.offerExtra();
    if (wanted === 0) return [];
    let used = 0;
    try {
      const { isMore, entries } = await this.#queue.claim(redis, { ...call, wanted, beside, ended: [] });
      this.isMore = isMore;
      used = entries.length;
      return entries;
    } finally {
      slots.giveExtra(wanted - used);
    }
  }
}

import type { ClaimCall, ClaimedQueue, QueueEntry } from '../../shared/queue/claimed-queue.ts';
import type { Claim } from './claim-keeper.ts';
import type { JobConsumerOptions } from './consumer.ts';

/** How often it looks: while jobs wait, and while none did when the queue was asked last. */
const lookMs = { more: 3, none: 25 };

/**
 * Claims for the extra slots of a worker without a free slot: jobs of other accounts than the one that has most of its jobs. Without them
 * they would wait until a job of that account ends, however long it takes.
 */
export class ExtraClaims {
  /** Whether jobs waited when the queue was last asked. */
  isMore = false;
  readonly #options: Pick<JobConsumerOptions, 'slots' | 'redis'>;
  readonly #queue: ClaimedQueue;
  readonly #running: Iterable<Claim>;
  #lookAt = 0;

  /** @param running the claims of the consumer whose jobs run */
  constructor(options: Pick<JobConsumerOptions, 'slots' | 'redis'>, queue: ClaimedQueue, running: Iterable<Claim>) {
    this.#options = options;
    this.#queue = queue;
    this.#running = running;
  }

  /** Until when it has looked of late enough, from now. */
  get waitMs(): number {
    return Math.max(0, this.#lookAt - performance.now());
  }

  /** Looks once. Each job that it returns has an extra slot, for `giveExtra` once it has ended. */
  async claim(call: Omit<ClaimCall, 'wanted' | 'beside' | 'ended'>): Promise<readonly QueueEntry[]> {
    const { slots, redis } = this.#options;
    this.#lookAt = performance.now() + (this.isMore ? lookMs.more : lookMs.none);
    const beside = dominantOf(this.#running);
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

/** The account that has more than half of the claims; undefined if none has. */
export function dominantOf(claims: Iterable<Pick<Claim, 'account'>>): string | undefined {
  const counts = new Map<string | undefined, number>();
  let all = 0;
  for (const { account } of claims) {
    all++;
    counts.set(account, (counts.get(account) ?? 0) + 1);
  }
  for (const [account, count] of counts) if (2 * count > all) return account;
  return undefined;
}

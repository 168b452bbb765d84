/** Share of the slots that jobs of low priority leave free. */
const keptShare = 0.1;

/** Slots beyond all, as a share of them, for jobs of other accounts while one account has most. Few slots get none. */
const extraShare = 0.1;

/** Slots that a consumer offers to the jobs of one claim. */
export interface SlotOffer {
  readonly count: number;
  /** How many of them jobs of low priority may have: some slots stay free for the other jobs that come meanwhile. */
  readonly spare: number;
}

/**
 * How many jobs of a capability a process runs at a time, shared by the consumers of its queue's shards: whichever finds jobs
 * takes the free slots. Those that wait for one get it in turn.
 */
export class ClaimSlots {
  /** Whether several consumers share them: none may keep slots while it waits for jobs. */
  isShared = false;
  #free: number;
  /** Slots in offers whose claims are not answered, and how many of those may go to jobs of low priority. */
  #offered = 0;
  #offeredSpare = 0;
  readonly #waiting: (() => void)[] = [];
  #freeExtra: number;
  /** What the jobs of each consumer have been claimed by. */
  readonly claims = new Set<Iterable<{ readonly account?: string | undefined }>>();
  /** How many there are, beside the extra ones. */
  readonly size: number;
  readonly #kept: number;

  constructor(size: number) {
    this.size = size;
    this.#free = size;
    this.#freeExtra = Math.floor(size * extraShare);
    // Of a single slot none can be kept.
    this.#kept = size === 1 ? 0 : Math.ceil(size * keptShare);
  }

  get free(): number {
    return this.#free;
  }

  /**
   * Takes as many slots as are free, up to `max`, for a claim, whose end must be told by `settle`. Slots of other claims have no
   * job yet either: they count as free ones for jobs of low priority, but for what those claims may give to such jobs.
   */
  offer(max: number): SlotOffer {
    const withoutJob = this.#free + this.#offered;
    const count = Math.min(max, this.#free);
    const spare = Math.min(count, Math.max(0, withoutJob - this.#kept - this.#offeredSpare));
    this.#free -= count;
    this.#offered += count;
    this.#offeredSpare += spare;
    return { count, spare };
  }

  /** Ends an offer, of whose slots some are used now; each of these is free again by `give`, once its job has ended. */
  settle(offer: SlotOffer, used: number): void {
    this.#offered -= offer.count;
    this.#offeredSpare -= offer.spare;
    this.give(offer.count - used);
  }

  give(count: number): void {
    this.#free += count;
    // All of them, in turn: one that is woken may need no slot after all, and those that find none wait again in the same order.
    if (count > 0) for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** The account that has more than half of the slots; undefined if none has. It looks at all claims. */
  dominant(): string | undefined {
    const counts = new Map<string, number>();
    for (const claims of this.claims) {
      for (const { account } of claims) {
        if (account !== undefined) counts.set(account, (counts.get(account) ?? 0) + 1);
      }
    }
    for (const [account, count] of counts) if (2 * count > this.size) return account;
    return undefined;
  }

  /** Takes all extra slots that are free, for a claim; `giveExtra` returns those that it does not use, and each once its job has ended. */
  offerExtra(): number {
    const count = this.#freeExtra;
    this.#freeExtra = 0;
    return count;
  }

  giveExtra(count: number): void {
    this.#freeExtra += count;
  }

  /** Resolves when a slot may be free, after `ms`, or once the signal is aborted. */
  available(signal: AbortSignal, ms?: number): Promise<void> {
    if (this.#free > 0 || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const settle = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', settle);
        const index = this.#waiting.indexOf(settle);
        // It leaves; a slot that is given now is another's.
        if (index >= 0) this.#waiting.splice(index, 1);
        resolve();
      };
      const timer = ms === undefined ? undefined : setTimeout(settle, ms);
      signal.addEventListener('abort', settle);
      this.#waiting.push(settle);
    });
  }
}

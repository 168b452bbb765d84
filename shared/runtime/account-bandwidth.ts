/** Characters of a frame that are free: a token, with the probabilities of twenty others, has fewer. */
const freeCharacters = 4096;
/** What an account may take at once before its vendors are paused, in ms of its rate: events with whole images come together. */
const burstMs = 1000;
/** How long an account counts after it was seen last, in ms. */
const presentMs = 5000;

/**
 * What the frames of an account's streams may take of one process, in characters a second, while the process serves other accounts.
 * Without a bound a vendor that sends to one account as fast as it can, or a client that reads a long answer again and again, takes
 * the machine's time and disk from all others. Only frames larger than any token count.
 */
export class AccountBandwidth {
  readonly #charactersPerMs: number;
  /** The account that was seen last, and the one before it, with the times in ms of `performance.now()`. */
  #latest = { account: '', at: Number.NEGATIVE_INFINITY };
  #other = { account: '', at: Number.NEGATIVE_INFINITY };
  /** When the rate has paid for what an account has taken; the latest to be changed is the last. */
  readonly #paidAt = new Map<string, number>();

  constructor(charactersPerSecond: number) {
    this.#charactersPerMs = charactersPerSecond / 1000;
  }

  /** Accounts of which a debt is kept. */
  get size(): number {
    return this.#paidAt.size;
  }

  /** The process works for the account. */
  see(account: string): void {
    if (account !== this.#latest.account) {
      const seen = this.#other;
      this.#other = this.#latest;
      this.#latest = seen;
      seen.account = account;
    }
    this.#latest.at = performance.now();
  }

  /**
   * Counts a frame.
   * @returns when the account's next one may be read, in ms of `performance.now()`; it may have passed
   */
  take(account: string, characters: number): number {
    this.see(account);
    const now = this.#latest.at;
    const isShared = now - this.#other.at < presentMs;
    if (characters <= freeCharacters || !isShared) return 0;
    this.#forgetPaid(now);
    const paidAt =
      Math.max(this.#paidAt.get(account) ?? 0, now) + (characters - freeCharacters) / this.#charactersPerMs;
    // Deleted first, so that it becomes the last.
    this.#paidAt.delete(account);
    this.#paidAt.set(account, paidAt);
    return paidAt - burstMs;
  }

  #forgetPaid(now: number): void {
    for (const [account, paidAt] of this.#paidAt) {
      if (paidAt > now) return;
      this.#paidAt.delete(account);
    }
  }
}

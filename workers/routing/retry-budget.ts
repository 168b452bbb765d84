/** Retries that may come in a burst, and how fast the allowance comes back, where there are few calls to take a share of. */
const reserve = 10;
const reservePerSecond = 1;
/** Calls whose share may be saved up. */
const savedCalls = 1000;

/**
 * Bounds retries to a share of the calls: when everything fails, what is tried again must not double the load on vendors
 * that are in trouble already. A process that makes few calls may still retry now and then.
 */
export class RetryBudget {
  readonly #share: () => number;
  readonly #now: () => number;
  #balance = reserve;
  #refilledAt: number;

  /** @param share retries for each call, such as 0.1 */
  constructor(share: () => number, now: () => number = Date.now) {
    this.#share = share;
    this.#now = now;
    this.#refilledAt = now();
  }

  /** Retries that are allowed now; a whole one is needed for the next. */
  get balance(): number {
    this.#refill();
    return this.#balance;
  }

  /** A job makes its first call. */
  deposit(): void {
    const share = this.#share();
    this.#balance = Math.min(this.#balance + share, Math.max(reserve, share * savedCalls));
  }

  /** Takes one retry out; false when there is none left. */
  withdraw(): boolean {
    this.#refill();
    if (this.#balance < 1) return false;
    this.#balance -= 1;
    return true;
  }

  #refill(): void {
    const now = this.#now();
    const earned = (Math.max(0, now - this.#refilledAt) / 1000) * reservePerSecond;
    this.#refilledAt = now;
    // What calls have earned beyond the reserve stays.
    if (this.#balance < reserve) this.#balance = Math.min(reserve, this.#balance + earned);
  }
}

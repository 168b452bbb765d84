/** Burst of retries, and how fast that allowance refills, for processes with few calls to take a share of. */
const reserve = 10;
const reservePerSecond = 1;
/** Number of calls whose share may accumulate. */
const savedCalls = 1000;

/**
 * Bounds retries to a share of the calls: when everything fails, retries must not double the load on vendors in trouble. A
 * process with few calls may still retry occasionally.
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

  /** Retries that are currently allowed; the next one needs a whole unit. */
  get balance(): number {
    this.#refill();
    return this.#balance;
  }

  /** Credits a job's first call. */
  deposit(): void {
    const share = this.#share();
    this.#balance = Math.min(this.#balance + share, Math.max(reserve, share * savedCalls));
  }

  /** Withdraws one retry; false if none remains. */
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
    // The share earned by calls beyond the reserve is kept.
    if (this.#balance < reserve) this.#balance = Math.min(reserve, this.#balance + earned);
  }
}

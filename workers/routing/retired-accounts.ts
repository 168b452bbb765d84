import type { Account } from './account.ts';

/** The accounts that a reload has removed. Running calls may finish with them, and videos that they began belong to them. */
export class RetiredAccounts {
  readonly #timers = new Map<Account, NodeJS.Timeout>();
  readonly #refused = new WeakSet<Account>();
  readonly #maxCallMs: number;

  /** @param maxCallMs how long their connections may still be used, in ms */
  constructor(maxCallMs: number) {
    this.#maxCallMs = maxCallMs;
  }

  /** Adds one that was removed just now. */
  add(account: Account): void {
    const close = (): void => {
      this.#timers.delete(account);
      account.vendor.close().catch(() => undefined);
    };
    this.#timers.set(account, setTimeout(close, this.#maxCallMs).unref());
  }

  /** The account of that vendor and id, unless its connections are closed. */
  find(name: string, id: string | undefined): Account | undefined {
    return [...this.#timers.keys()].find((each) => each.vendor.name === name && each.id === id);
  }

  /** Records that the vendor refuses the key of an account, if it is one of these. */
  refuse(account: Account): void {
    if (this.#timers.has(account)) this.#refused.add(account);
  }

  /** Whether the vendor has refused its key since it was removed. */
  isRefused(account: Account): boolean {
    return this.#refused.has(account);
  }

  /** Closes their connections, including those in use. */
  async close(): Promise<void> {
    for (const timer of this.#timers.values()) clearTimeout(timer);
    await Promise.all([...this.#timers.keys()].map(({ vendor }) => vendor.close()));
  }
}

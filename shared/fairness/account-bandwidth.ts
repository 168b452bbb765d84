import { setTimeout as delay } from 'node:timers/promises';
import { RecentAccounts } from '../runtime/collections.ts';

/** Characters of a frame that are free: a token, with the probabilities of twenty others, has fewer. */
export const freeCharacters = 4096;
/** What an account may take at once before it is paced, in ms of its rate: events with whole images come together. */
const burstMs = 1000;
/** How long an account counts after it was seen last, in ms. */
const presentMs = 5000;

/**
 * What the frames of an account's streams may take of one process, in characters a second, while the process serves other accounts.
 * Without a bound a vendor that sends to one account as fast as it can, or a client that reads a long answer again and again, takes
 * the machine's time and disk from all others. Only frames larger than any token count.
 */
export class AccountBandwidth {
  /** Those that the process serves. Tokens are not taken, only seen. */
  readonly accounts = new RecentAccounts();
  readonly #charactersPerMs: number;
  readonly #onPaced: () => void;
  /** When the rate has paid for what an account has taken; the latest to be changed is the last. In ms of `performance.now()`. */
  readonly #paidAt = new Map<string, number>();

  /** @param onPaced called for each frame after which its account may not take the next at once */
  constructor(charactersPerSecond: number, onPaced: () => void = () => undefined) {
    this.#charactersPerMs = charactersPerSecond / 1000;
    this.#onPaced = onPaced;
  }

  /** Accounts of which a debt is kept. */
  get size(): number {
    return this.#paidAt.size;
  }

  /**
   * Counts a frame.
   * @returns when the account's next one may be read, in ms of `performance.now()`; it may have passed
   */
  take(account: string, characters: number): number {
    this.accounts.see(account);
    if (characters <= freeCharacters || !this.accounts.hasOthers(account, presentMs)) return 0;
    const now = performance.now();
    this.#forgetPaid(now);
    const paidAt =
      Math.max(this.#paidAt.get(account) ?? 0, now) + (characters - freeCharacters) / this.#charactersPerMs;
    // Deleted first, so that it becomes the last.
    this.#paidAt.delete(account);
    this.#paidAt.set(account, paidAt);
    if (paidAt - burstMs > now) this.#onPaced();
    return paidAt - burstMs;
  }

  #forgetPaid(now: number): void {
    for (const [account, paidAt] of this.#paidAt) {
      if (paidAt > now) return;
      this.#paidAt.delete(account);
    }
  }
}

/** What one answer takes of its account's bandwidth, and when it may be read on. */
export class AccountPace {
  readonly #bandwidth: Pick<AccountBandwidth, 'take'>;
  readonly #account: string;
  /** Of what rests: most answers never do, and it would cost each of them a hundredth of its time. */
  #closing: AbortController | undefined;
  #isClosed = false;
  /** In ms of `performance.now()`. */
  #resumeAt = 0;

  constructor(bandwidth: Pick<AccountBandwidth, 'take'>, account: string) {
    this.#bandwidth = bandwidth;
    this.#account = account;
  }

  /** A frame was read. */
  take(characters: number): void {
    this.#resumeAt = Math.max(this.#resumeAt, this.#bandwidth.take(this.#account, characters));
  }

  /** Whether the next frame must wait. */
  get isResting(): boolean {
    return this.#resumeAt > performance.now() && !this.#isClosed;
  }

  /** Resolves when the next frame may be read, or nobody will read it. */
  async rested(): Promise<void> {
    while (this.isResting) {
      this.#closing ??= new AbortController();
      const { signal } = this.#closing;
      await delay(Math.ceil(this.#resumeAt - performance.now()), undefined, { signal }).catch(() => undefined);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#closing?.abort();
  }
}

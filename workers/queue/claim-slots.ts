/** Share of the slots that jobs of low priority leave free. */
const keptShare = 0.1;

/**
 * How many jobs of a capability a process runs at a time, shared by the consumers of its queue's shards: whichever finds jobs
 * takes the free slots. Those that wait for one get it in turn.
 */
export class ClaimSlots {
  /** Whether several consumers share them: none may keep slots while it waits for jobs. */
  isShared = false;
  #free: number;
  readonly #waiting: (() => void)[] = [];
  readonly #size: number;

  constructor(size: number) {
    this.#size = size;
    this.#free = size;
  }

  get free(): number {
    return this.#free;
  }

  get used(): number {
    return this.#size - this.#free;
  }

  /**
   * How many of some taken slots jobs of low priority may have: some slots stay free for the other jobs that come meanwhile.
   * @param taken that have no job yet
   */
  spareOf(taken: number): number {
    const kept = this.#size === 1 ? 0 : Math.ceil(this.#size * keptShare);
    return Math.max(0, taken - Math.max(0, kept - this.#free));
  }

  /** Takes as many slots as are free, up to `max`; returns their number. */
  take(max: number): number {
    const taken = Math.min(max, this.#free);
    this.#free -= taken;
    return taken;
  }

  give(count: number): void {
    this.#free += count;
    // All of them, in turn: one that is woken may need no slot after all, and those that find none wait again in the same order.
    if (count > 0) for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Resolves when a slot may be free, or once the signal is aborted. */
  available(signal: AbortSignal): Promise<void> {
    if (this.#free > 0 || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const settle = (): void => {
        signal.removeEventListener('abort', settle);
        const index = this.#waiting.indexOf(settle);
        // It leaves; a slot that is given now is another's.
        if (index >= 0) this.#waiting.splice(index, 1);
        resolve();
      };
      signal.addEventListener('abort', settle);
      this.#waiting.push(settle);
    });
  }
}

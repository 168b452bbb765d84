import { ApiError } from '../errors.ts';
import { FairQueue, type FairQueueLimits, type FairTask } from './fair-queue.ts';

interface Turn extends FairTask {
  readonly begin: () => void;
  readonly drop: () => void;
}

/** Runs the work of all accounts, so much at a time: next comes that of the account whose work has taken the least time. */
export class FairTurns {
  readonly #waiting: FairQueue<Turn>;
  #free: number;

  /**
   * @param atATime pieces of work that run at a time
   * @param limits of what waits for its turn
   */
  constructor(atATime: number, limits: FairQueueLimits) {
    this.#free = atATime;
    this.#waiting = new FairQueue(limits);
  }

  /**
   * Runs work once it is its account's turn.
   * @param of whose work it is, and the bytes that it keeps in memory while it waits
   * @param signal ends the wait for the turn
   * @throws what the work throws; ApiError `timeout` when the signal came before its turn, or too much waits, most of it of this account
   */
  async run<T>(of: FairTask, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    await this.#turn(of, signal);
    const since = performance.now();
    try {
      return await work();
    } finally {
      this.#free++;
      this.#waiting.spend(of.account, performance.now() - since);
      this.#beginNext();
    }
  }

  async #turn({ account, bytes }: FairTask, signal: AbortSignal): Promise<void> {
    let giveUp = (): void => undefined;
    try {
      await new Promise<void>((resolve, reject) => {
        const drop = (): void => reject(new ApiError('timeout', 'It was not its turn in time.'));
        if (signal.aborted) return drop();
        const turn: Turn = { account, bytes, begin: resolve, drop };
        giveUp = () => {
          this.#waiting.remove(turn);
          drop();
        };
        signal.addEventListener('abort', giveUp);
        for (const dropped of this.#waiting.push(turn)) dropped.drop();
        this.#beginNext();
      });
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }

  #beginNext(): void {
    while (this.#free > 0) {
      const next = this.#waiting.take();
      if (next === undefined) return;
      this.#free--;
      next.begin();
    }
  }
}

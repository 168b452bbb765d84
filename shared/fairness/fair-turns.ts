import type { ApiError } from '../errors.ts';
import { FairQueue, type FairQueueLimits, type FairTask } from './fair-queue.ts';

interface Turn extends FairTask {
  readonly begin: () => void;
  readonly refuse: (error: ApiError) => void;
}

/** Errors for work that does not run. */
export interface TurnErrors {
  /** Too much waits, most of it of this account. */
  readonly tooMany: () => ApiError;
  /** Its turn has not come in time. */
  readonly tooLate: () => ApiError;
}

/** Runs the work of all accounts, so much at a time: next comes that of the account whose work has taken the least time. */
export class FairTurns {
  readonly #waiting: FairQueue<Turn>;
  readonly #errors: TurnErrors;
  #free: number;

  /**
   * @param atATime pieces of work that run at a time
   * @param limits of what waits for its turn
   */
  constructor(atATime: number, limits: FairQueueLimits, errors: TurnErrors) {
    this.#free = atATime;
    this.#waiting = new FairQueue(limits);
    this.#errors = errors;
  }

  /**
   * Runs work once it is its account's turn.
   * @param of whose work it is, and the bytes that it keeps in memory while it waits
   * @param signal ends the wait for the turn
   * @throws what the work throws; ApiError `tooLate` when the signal came before its turn, `tooMany` when too much waits
   */
  async run<T>(of: FairTask, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    if (this.#free > 0 && !signal.aborted) this.#free--;
    else await this.#turn(of, signal);
    const since = performance.now();
    try {
      return await work();
    } finally {
      this.#waiting.spend(of.account, performance.now() - since);
      this.#passOn();
    }
  }

  async #turn({ account, bytes }: FairTask, signal: AbortSignal): Promise<void> {
    let giveUp = (): void => undefined;
    try {
      await new Promise<void>((resolve, reject) => {
        const turn: Turn = { account, bytes, begin: resolve, refuse: reject };
        giveUp = () => {
          this.#waiting.remove(turn);
          reject(this.#errors.tooLate());
        };
        if (signal.aborted) return giveUp();
        signal.addEventListener('abort', giveUp);
        for (const dropped of this.#waiting.push(turn)) dropped.refuse(this.#errors.tooMany());
      });
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }

  #passOn(): void {
    const next = this.#waiting.take();
    if (next === undefined) this.#free++;
    else next.begin();
  }
}

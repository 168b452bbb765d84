import { type Settlement, settle } from '../shared/jobs/settle.ts';
import type { RedisClient } from '../shared/redis.ts';

interface Waiting {
  readonly settlement: Settlement;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Settles the jobs that ended in one turn of the event loop with one call per account. */
export class Settler {
  readonly #redis: RedisClient;
  #waiting: Waiting[] = [];

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** Resolves when the job is settled. */
  settle(settlement: Settlement): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length === 0) setImmediate(() => this.#settleAll());
      this.#waiting.push({ settlement, resolve, reject });
    });
  }

  #settleAll(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    settle(
      this.#redis,
      waiting.map(({ settlement }) => settlement),
    ).then(
      () => {
        for (const { resolve } of waiting) resolve();
      },
      (error) => {
        for (const { reject } of waiting) reject(error);
      },
    );
  }
}

import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../shared/runtime/log.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';

/** Interval between tries. */
const everyMs = 1000;
/** How long a try may still take when the process closes. */
const closeMs = 1000;
/** Tries between two log lines. */
const triesPerLine = 60;

/** What to do once the database is there; both steps are repeated until they succeed. */
export interface DatabaseArrivalOptions {
  /** Connects to it and brings its tables up to date. */
  readonly reach: () => Promise<void>;
  /** What the start does with a database. */
  readonly setUp: () => Promise<void>;
  readonly log: Logger;
}

/** Waits for a database that is away at the start of a process. */
export class DatabaseArrival {
  readonly #options: DatabaseArrivalOptions;
  readonly #closing = new AbortController();
  readonly #trying: Promise<void>;

  constructor(options: DatabaseArrivalOptions) {
    this.#options = options;
    this.#trying = this.#try();
  }

  /** Stops trying. A try under way may wait for a silent server, or for the migrations of another process. */
  async close(): Promise<void> {
    this.#closing.abort();
    await withTimeout(this.#trying, closeMs);
  }

  async #try(): Promise<void> {
    const { reach, setUp, log } = this.#options;
    const { signal } = this.#closing;
    for (let tries = 1; ; tries++) {
      await delay(everyMs, undefined, { signal, ref: false }).catch(() => undefined);
      if (signal.aborted) return;
      try {
        await reach();
        await setUp();
        log.warn({ tries }, 'the database is there now');
        return;
      } catch (error) {
        if (tries % triesPerLine === 1) log.warn({ err: error, tries }, 'the database cannot be used yet');
      }
    }
  }
}

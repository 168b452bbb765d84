import type { Database } from '../../shared/database/database.ts';
import type { Logger } from '../../shared/runtime/log.ts';

/** How often a key's use is written down, at most. */
const intervalMs = 60_000;
/** Uses that come within this time are written together. */
const gatherMs = 1000;
/** Keys that are remembered, and keys that may wait for one writing. */
const maxKeys = 10_000;
/** Ids that one statement names. */
const batchSize = 500;

/**
 * When keys were used last, for people who look at their keys. Never in a request's way: uses are written in batches, each
 * key's at most once a minute, and where that fails nothing is said but in the log.
 */
export class KeyUses {
  readonly #db: Database;
  readonly #log: Logger;
  /** When a key's use was noted last, by its id, the oldest first. */
  readonly #noted = new Map<string, number>();
  #pending = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  #isClosed = false;

  constructor(db: Database, log: Logger) {
    this.#db = db;
    this.#log = log;
  }

  /** A key is used now. */
  note(id: string): void {
    const now = Date.now();
    const last = this.#noted.get(id);
    if (this.#isClosed || (last !== undefined && now - last < intervalMs) || this.#pending.size >= maxKeys) return;
    this.#noted.delete(id);
    if (this.#noted.size >= maxKeys) this.#noted.delete(this.#noted.keys().next().value as string);
    this.#noted.set(id, now);
    this.#pending.add(id);
    this.#arm();
  }

  /** Writes what is noted. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#writing;
    await this.#write();
  }

  #arm(): void {
    if (this.#timer !== undefined || this.#writing !== undefined || this.#isClosed) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#writing = this.#write().finally(() => {
        this.#writing = undefined;
        // What came meanwhile.
        if (this.#pending.size > 0) this.#arm();
      });
    }, gatherMs);
    this.#timer.unref();
  }

  async #write(): Promise<void> {
    const ids = [...this.#pending];
    this.#pending = new Set();
    // Gathered within a moment: one time is exact enough for all.
    const now = Date.now();
    try {
      for (let start = 0; start < ids.length; start += batchSize) {
        await this.#db
          .updateTable('api_keys')
          .set({ last_used_at: now })
          .where('id', 'in', ids.slice(start, start + batchSize))
          .where((is) => is.or([is('last_used_at', 'is', null), is('last_used_at', '<', now)]))
          .execute();
      }
    } catch (error) {
      this.#log.debug({ err: error }, 'writing the last-used times of keys failed');
      for (const id of ids) this.#noted.delete(id);
    }
  }
}

import type { Database } from '../../shared/database/database.ts';
import type { Logger } from '../../shared/runtime/log.ts';

/** Minimum interval between two writes of a key's use. */
const intervalMs = 60_000;
/** Batch window for uses. */
const gatherMs = 1000;
/** Maximum number of remembered keys, and of keys waiting for a write. */
const maxKeys = 10_000;
/** Maximum ids in one statement. */
const batchSize = 500;

/**
 * Records when keys were last used, for display. Writes never delay a request: they are batched, at most once a minute for
 * each key, and failures are only logged.
 */
export class KeyUses {
  readonly #db: Database;
  readonly #log: Logger;
  /** Time of a key's last noted use by its id, the oldest first. */
  readonly #noted = new Map<string, number>();
  #pending = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  #isClosed = false;

  constructor(db: Database, log: Logger) {
    this.#db = db;
    this.#log = log;
  }

  /** Notes a use of the key. */
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

  /** Writes pending uses. */
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
        // Uses noted during the write.
        if (this.#pending.size > 0) this.#arm();
      });
    }, gatherMs);
    this.#timer.unref();
  }

  async #write(): Promise<void> {
    const ids = [...this.#pending];
    this.#pending = new Set();
    // The batch window is short: one time is exact enough for all.
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

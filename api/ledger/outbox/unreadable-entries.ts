import type { Logger } from '../../../shared/runtime/log.ts';
import type { OutboxEntry } from './outbox-group.ts';

/** An entry not seen for this long was read by another process. Takeovers are more frequent than this. */
const forgetMs = 180_000;
const maxEntries = 10_000;

/** Outbox entries that this version cannot read. They stay in their outbox for a newer process. */
export class UnreadableEntries {
  readonly #log: Logger;
  /** Time of the last sighting by the monotonic clock, by entry. */
  readonly #seen = new Map<string, number>();

  constructor(log: Logger) {
    this.#log = log;
  }

  add({ key, id }: Pick<OutboxEntry, 'key' | 'id'>): void {
    const name = `${key} ${id}`;
    if (!this.#seen.delete(name)) {
      this.#log.error({ outbox: key, entry: id }, 'outbox entry has an unknown version; it is kept');
    }
    this.#seen.set(name, performance.now());
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > maxEntries && oldest !== undefined) this.#seen.delete(oldest);
  }

  /** Number of entries that this process has seen recently. */
  get size(): number {
    const oldest = performance.now() - forgetMs;
    for (const [name, seenAt] of this.#seen) {
      if (seenAt > oldest) break;
      this.#seen.delete(name);
    }
    return this.#seen.size;
  }
}

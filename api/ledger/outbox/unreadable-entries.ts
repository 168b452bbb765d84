import type { Logger } from '../../../shared/runtime/log.ts';
import type { OutboxEntry } from './outbox-group.ts';

/** An entry that has not been seen for so long was read by another process. It is taken over again sooner than that. */
const forgetMs = 180_000;
/** Entries that are remembered. */
const maxEntries = 10_000;

/** Entries of the outboxes that this version cannot read: a newer process will, so they stay where they are. */
export class UnreadableEntries {
  readonly #log: Logger;
  /** When each was last seen. */
  readonly #seen = new Map<string, number>();

  constructor(log: Logger) {
    this.#log = log;
  }

  add({ key, id }: Pick<OutboxEntry, 'key' | 'id'>): void {
    const name = `${key} ${id}`;
    if (!this.#seen.delete(name)) {
      this.#log.error({ outbox: key, entry: id }, 'outbox entry has an unknown version; it is kept');
    }
    this.#seen.set(name, Date.now());
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > maxEntries && oldest !== undefined) this.#seen.delete(oldest);
  }

  /** How many there are, as far as this process has seen them of late. */
  get size(): number {
    const oldest = Date.now() - forgetMs;
    for (const [name, seenAt] of this.#seen) {
      if (seenAt > oldest) break;
      this.#seen.delete(name);
    }
    return this.#seen.size;
  }
}

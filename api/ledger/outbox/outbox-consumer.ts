import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../../shared/runtime/log.ts';
import { withTimeout } from '../../../shared/runtime/with-timeout.ts';
import type { OutboxBatch, OutboxEntry, OutboxGroup } from './outbox-group.ts';
import type { OutboxSpool } from './outbox-spool.ts';
import type { Quarantine } from './quarantine.ts';
import { type RecordStore, writeRecords } from './record-writer.ts';
import { type ReadableEntry, readEntry } from './spooled-records.ts';
import type { UnreadableEntries } from './unreadable-entries.ts';

/** Delay before the next read after one that found little or nothing. On a Cluster a read costs 64 commands. */
const idleMs = 250;
const clusterIdleMs = 1000;
/** Interval between takeovers of abandoned entries, and between removals of dead consumers. */
const takeOverRoundMs = 10_000;
const forgetRoundMs = 60_000;
/** Records written in one transaction. */
const batchRecords = 500;
/** Delay after a failure: the first, and the maximum. */
const firstRetryMs = 250;
const maxRetryMs = 5000;

export interface OutboxConsumerOptions {
  readonly group: OutboxGroup;
  readonly isCluster: boolean;
  readonly store: RecordStore;
  readonly quarantine: Pick<Quarantine, 'add'>;
  /** Takes entries off Redis while the database is away. If missing, they stay in Redis. */
  readonly spool?: OutboxSpool | undefined;
  readonly unreadable: UnreadableEntries;
  /** Called with the number of quarantined records. */
  readonly onSetAside?: (records: number) => void;
  /** Called when reading or writing records fails, before it is retried. */
  readonly onFailure?: () => void;
  readonly log: Logger;
  /** Override of the default (10 s), for tests. */
  readonly takeOverRoundMs?: number;
}

/**
 * Writes the records of ended jobs from the outboxes into the database in batches. An entry leaves its outbox only after the
 * commit, and a second write changes nothing, so every record counts exactly once despite crashes. Records that the database
 * refuses are quarantined, those of an unknown version stay, and neither delays the others.
 */
export class OutboxConsumer {
  readonly #options: OutboxConsumerOptions;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  /** While closing, remaining entries are still written until the time is up. */
  #isDraining = false;
  /** By the monotonic clock, which nobody puts back. */
  #takeOverAt = 0;
  #forgetAt = performance.now() + forgetRoundMs;
  #failures = 0;

  constructor(options: OutboxConsumerOptions) {
    this.#options = options;
    this.#running = this.#run();
  }

  /** Writes remaining entries for at most `ms`. Unwritten ones stay in the outbox. */
  async close(ms: number): Promise<void> {
    this.#isDraining = true;
    this.#wake();
    await withTimeout(this.#running, ms);
    this.#closing.abort();
    await withTimeout(this.#running, ms);
  }

  #wake: () => void = () => undefined;

  async #run(): Promise<void> {
    const { log, group } = this.#options;
    while (!this.#closing.signal.aborted) {
      // Before it reads: what was added before `close` is read after it.
      const isLast = this.#isDraining;
      try {
        const { entries, isFull } = await this.#next();
        await this.#store(entries);
        const hasReplayed = await this.#replay();
        this.#failures = 0;
        if (isFull || (hasReplayed && !this.#isDraining)) continue;
        if (isLast) {
          await group.leave();
          return;
        }
        await this.#pause(this.#options.isCluster ? clusterIdleMs : idleMs);
      } catch (error) {
        log.warn({ err: error }, 'reading or writing job records failed; retrying');
        this.#options.onFailure?.();
        await this.#pauseAfterFailure();
      }
    }
  }

  /** Reads new entries, and periodically takes over abandoned ones. */
  async #next(): Promise<OutboxBatch> {
    const { group, log } = this.#options;
    const now = performance.now();
    if (now >= this.#forgetAt) {
      this.#forgetAt = now + forgetRoundMs;
      await group.forgetDead();
    }
    const fresh = await group.read();
    if (now < this.#takeOverAt || fresh.isFull) return fresh;
    // Entries read are now this consumer's: they are written even if the takeover fails.
    const left = await group.takeOver().catch((error) => {
      log.warn({ err: error }, 'taking over the job records of another process failed; retrying');
      return { entries: [], isFull: false };
    });
    // An abandoned entry suggests more of them.
    if (left.entries.length === 0) this.#takeOverAt = now + (this.#options.takeOverRoundMs ?? takeOverRoundMs);
    return { entries: [...fresh.entries, ...left.entries], isFull: left.isFull };
  }

  /** Writes entries and removes each batch from its outbox once it is written. */
  async #store(entries: readonly OutboxEntry[]): Promise<void> {
    const { group, unreadable, spool } = this.#options;
    // An entry without a text was deleted but not acknowledged.
    const gone = entries.filter(({ text }) => text === undefined);
    if (gone.length > 0) await group.acknowledge(gone);
    const readable: ReadableEntry[] = [];
    for (const entry of entries) {
      if (entry.text === undefined) continue;
      const read = readEntry(entry);
      if (read === undefined) unreadable.add(entry);
      else readable.push(read);
    }
    for (let start = 0; start < readable.length && !this.#closing.signal.aborted; ) {
      const batch = readable.slice(start, start + batchRecords);
      try {
        await this.#write(batch);
        start += batch.length;
        spool?.databaseIsBack();
        this.#failures = 0;
      } catch (error) {
        this.#options.log.warn({ err: error, records: batch.length }, 'writing job records failed; retrying');
        this.#options.onFailure?.();
        if (await spool?.takeIfOver(readable.slice(start), this.#closing.signal)) return;
        await this.#pauseAfterFailure();
      }
    }
  }

  async #write(batch: readonly ReadableEntry[]): Promise<void> {
    const { store, group, quarantine, onSetAside, log } = this.#options;
    const items = batch.map(({ item }) => item);
    const { refused, postponed } = await writeRecords(store, items, log);
    const aside = batch.filter(({ item }) => refused.includes(item)).map(({ entry }) => entry);
    await quarantine.add(aside);
    if (aside.length > 0) onSetAside?.(aside.length);
    // Postponed entries stay pending and are taken over again.
    const done = postponed.length === 0 ? batch : batch.filter(({ item }) => !postponed.includes(item));
    if (done.length > 0) await group.acknowledge(done.map(({ entry }) => entry));
  }

  /** Writes the oldest file of the spool. Returns false if there is none. */
  async #replay(): Promise<boolean> {
    const { spool, store, quarantine, onSetAside, log } = this.#options;
    const file = await spool?.oldest();
    if (file === undefined) return false;
    for (let start = 0; start < file.items.length; start += batchRecords) {
      if (this.#closing.signal.aborted) return false;
      const batch = file.items.slice(start, start + batchRecords);
      const { refused } = await writeRecords(
        store,
        batch.map(({ item }) => item),
        log,
      );
      const aside = batch.filter(({ item }) => refused.includes(item)).map(({ entry }) => entry);
      await quarantine.add(aside);
      if (aside.length > 0) onSetAside?.(aside.length);
    }
    await quarantine.add(file.broken);
    await file.remove();
    return true;
  }

  async #pauseAfterFailure(): Promise<void> {
    const ms = Math.min(firstRetryMs * 2 ** this.#failures, maxRetryMs);
    this.#failures = Math.min(this.#failures + 1, 10);
    await delay(ms, undefined, { signal: this.#closing.signal }).catch(() => undefined);
  }

  async #pause(ms: number): Promise<void> {
    if (this.#isDraining) return;
    const woken = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    await withTimeout(woken, ms);
  }
}

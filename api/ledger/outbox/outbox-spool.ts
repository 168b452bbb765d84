import type { RedisClient } from '../../../shared/redis/redis.ts';
import type { Logger } from '../../../shared/runtime/log.ts';
import type { LedgerItem } from '../job-ledger.ts';
import type { OutboxEntry, OutboxGroup } from './outbox-group.ts';
import type { Backlog } from './outbox-size.ts';
import type { Spool } from './spool.ts';
import { reportSpool } from './spool-reports.ts';
import { type ReadableEntry, readEntry, readSpooledLine, spooledLine } from './spooled-records.ts';
import type { UnreadableEntries } from './unreadable-entries.ts';

/** Characters at which a file of the spool takes no further line. */
const fileCharacters = 4 * 1024 * 1024;
/** Outboxes over their limit are emptied down to this share of it. */
const lowShare = 0.5;
/** Interval of reports that records wait here. */
const reportMs = 60_000;

export interface OutboxSpoolOptions {
  readonly redis: RedisClient;
  readonly group: OutboxGroup;
  readonly spool: Spool;
  readonly backlog: Backlog;
  readonly unreadable: UnreadableEntries;
  /** Adds a record's answer. Undefined if that cannot be read for now. */
  readonly read: (item: LedgerItem) => Promise<LedgerItem | undefined>;
  /** Releases answers in Redis that are stored elsewhere. */
  readonly release: (items: readonly LedgerItem[]) => Promise<void>;
  readonly log: Logger;
}

/** A file of the spool. */
export interface SpooledFile {
  readonly items: readonly { readonly entry: OutboxEntry; readonly item: LedgerItem }[];
  /** Malformed lines. */
  readonly broken: readonly Pick<OutboxEntry, 'text' | 'charge'>[];
  /** Deletes the file, once all of it is in the database. */
  remove(): Promise<void>;
}

/** Moves records from the outboxes to this process's disk while the database is away and Redis holds too many of them. */
export class OutboxSpool {
  readonly #options: OutboxSpoolOptions;
  #isWarned = false;
  #isFull = false;
  /** When to report next, by the monotonic clock. */
  #reportAt = 0;

  constructor(options: OutboxSpoolOptions) {
    this.#options = options;
  }

  /** Called when the database accepts records. */
  databaseIsBack(): void {
    this.#options.backlog.end();
    this.#isWarned = false;
    this.#isFull = false;
  }

  /**
   * If the outboxes are over their limit, moves entries that this consumer has read to the disk, and continues with unread
   * ones. Entries leave their outbox once they are synced.
   * @returns whether the given entries are done; false: they still have to be written
   */
  async takeIfOver(entries: readonly ReadableEntry[], signal: AbortSignal): Promise<boolean> {
    const { backlog, log, group, unreadable } = this.#options;
    await this.#repeatReport();
    if (!(await backlog.isOver())) return false;
    if (!this.#isWarned) {
      this.#isWarned = true;
      log.warn({ bytes: backlog.bytes }, 'database unavailable; job records go to the spool on disk');
    }
    let batch = entries;
    do {
      for (let start = 0; start < batch.length; ) {
        const taken = await this.#takeFile(batch.slice(start));
        if (taken === 0) return false;
        start += taken;
      }
      if (signal.aborted || !(await backlog.isOver(lowShare))) return true;
      const { entries: unread } = await group.read();
      batch = unread.flatMap((entry) => {
        const read = readEntry(entry);
        if (read === undefined && entry.text !== undefined) unreadable.add(entry);
        return read ?? [];
      });
    } while (batch.length > 0);
    return true;
  }

  /** Returns the oldest file, or undefined if there is none, or if it was written by a newer version. */
  async oldest(): Promise<SpooledFile | undefined> {
    const { spool, redis, log } = this.#options;
    await this.#repeatReport();
    const file = await spool.oldest();
    if (file === undefined) return undefined;
    const items: { entry: OutboxEntry; item: LedgerItem }[] = [];
    const broken: Pick<OutboxEntry, 'text' | 'charge'>[] = [];
    const unread: OutboxEntry[] = [];
    for (const line of file.lines) {
      const read = readSpooledLine(line);
      if (read === 'other_version') {
        log.error({ file: file.name }, 'file of the spool has an unknown version; it is kept');
        spool.keep(file.name);
        return undefined;
      }
      if (read === undefined) broken.push({ text: line, charge: undefined });
      else if (read.item === undefined) unread.push(read.entry);
      else items.push({ entry: read.entry, item: read.item });
    }
    const remove = async (): Promise<void> => {
      // Lines of a newer version return to their outbox, for a process that can read them.
      for (const { key, text = '', charge, late } of unread) {
        await redis.xadd(key, '*', 'r', text, ...(charge ? ['c', charge] : []), ...(late ? ['l', late] : []));
      }
      await file.remove();
      await this.#report(spool.records);
    };
    return { items, broken, remove };
  }

  /** Writes one file, and removes its entries from their outboxes. @returns the number of entries that are done */
  async #takeFile(entries: readonly ReadableEntry[]): Promise<number> {
    const { spool, group, read, release, log } = this.#options;
    const [lines, spooled, items]: [string[], OutboxEntry[], LedgerItem[]] = [[], [], []];
    let [taken, characters] = [0, 0];
    for (const { entry, item } of entries) {
      if (characters >= fileCharacters) break;
      taken++;
      const whole = await read(item);
      // An entry whose answer cannot be read stays pending, and is taken over again.
      if (whole === undefined) continue;
      const line = spooledLine(entry, whole);
      characters += line.length;
      lines.push(line);
      spooled.push(entry);
      items.push(whole);
    }
    if (lines.length === 0) return taken;
    try {
      if (!(await spool.hasRoom(characters))) {
        if (!this.#isFull) log.error({ bytes: spool.bytes }, 'spool is full; job records stay in Redis');
        this.#isFull = true;
        return 0;
      }
      // Reported before they leave Redis, so that no other process considers their jobs lost.
      await this.#report(spool.records + lines.length);
      await spool.add(lines);
    } catch (error) {
      log.error({ err: error }, 'writing the spool failed; job records stay in Redis');
      return 0;
    }
    await group.acknowledge(spooled);
    await release(items);
    return taken;
  }

  /** Repeats the report while records wait here. */
  async #repeatReport(): Promise<void> {
    const { records } = this.#options.spool;
    if (records === 0 || performance.now() < this.#reportAt) return;
    this.#reportAt = performance.now() + reportMs;
    await this.#report(records);
  }

  /** Reports to other processes whether records wait here. */
  async #report(records: number): Promise<void> {
    const { redis, spool } = this.#options;
    await reportSpool(redis, spool.name, records);
  }
}

import { setTimeout as delay } from 'node:timers/promises';
import { isDatabaseAway } from '../../../shared/database/database-error.ts';
import type { Logger } from '../../../shared/runtime/log.ts';
import type { LedgerItem } from '../job-ledger.ts';

/** Tries of a record that fails alone before it is quarantined, and the delay between them. */
const maxTries = 3;
const triesApartMs = 100;

/** Writes records into the database. */
export interface RecordStore {
  /**
   * Writes records; must tolerate those it has written before.
   * @returns those that are not written because their answer cannot be read for now
   * @throws while the database is away, or if it refuses one of them.
   */
  writeItems(items: readonly LedgerItem[]): Promise<readonly LedgerItem[]>;
  /** Writes a made-up record and rolls it back. @throws when that fails: then no record is at fault. */
  probe(): Promise<void>;
}

/** The outcome of a write. Records in neither list are written. */
export interface Written {
  /** Refused by a database that accepts others: to be quarantined. */
  readonly refused: readonly LedgerItem[];
  /** To be retried later. */
  readonly postponed: readonly LedgerItem[];
}

/**
 * Writes a batch of records. A refused batch is halved until the records are found that fail alone, so that one bad record
 * does not keep the others out of the ledger.
 * @throws while the database is away: then no record is at fault.
 */
export async function writeRecords(store: RecordStore, items: readonly LedgerItem[], log: Logger): Promise<Written> {
  try {
    return { refused: [], postponed: await store.writeItems(items) };
  } catch (error) {
    if (isDatabaseAway(error)) throw error;
    const [only] = items;
    if (only === undefined) throw error;
    if (items.length === 1) return await writeAlone(store, only, error, log);
    const middle = Math.ceil(items.length / 2);
    const first = await writeRecords(store, items.slice(0, middle), log);
    const second = await writeRecords(store, items.slice(middle), log);
    return {
      refused: [...first.refused, ...second.refused],
      postponed: [...first.postponed, ...second.postponed],
    };
  }
}

/** Retries a record that failed alone, while the database accepts a made-up one. */
async function writeAlone(store: RecordStore, item: LedgerItem, cause: unknown, log: Logger): Promise<Written> {
  let error = cause;
  for (let tries = 1; tries < maxTries; tries++) {
    await store.probe();
    await delay(triesApartMs);
    try {
      return { refused: [], postponed: await store.writeItems([item]) };
    } catch (again) {
      if (isDatabaseAway(again)) throw again;
      error = again;
    }
  }
  await store.probe();
  // Never the error's message: it may quote the row, which contains the caller's tags.
  const { name, code } = error as { name?: unknown; code?: unknown };
  log.error({ job: item.record.id, error: name, code }, 'database rejected a job record; it is quarantined');
  return { refused: [item], postponed: [] };
}

import { setTimeout as delay } from 'node:timers/promises';
import { isDatabaseAway } from '../../../shared/database/database-error.ts';
import type { Logger } from '../../../shared/runtime/log.ts';
import type { LedgerItem } from '../job-ledger.ts';

/** How often a record that fails alone is tried before it is set aside, and the wait between the tries. */
const maxTries = 3;
const triesApartMs = 100;

/** What writes records into the database. */
export interface RecordStore {
  /**
   * Writes records; must tolerate those it has written before.
   * @returns those that could not be parsed for now (their answer cannot be read): they are not written
   * @throws while the database is away, or where it refuses one of them.
   */
  writeItems(items: readonly LedgerItem[]): Promise<readonly LedgerItem[]>;
  /** Writes a made-up record and takes it back. @throws where that fails: then no record is at fault. */
  probe(): Promise<void>;
}

/** What became of records. Those named in neither list are written. */
export interface Written {
  /** Refused by a database that takes others: they are to be set aside. */
  readonly refused: readonly LedgerItem[];
  /** To be tried again later. */
  readonly postponed: readonly LedgerItem[];
}

/**
 * Writes a batch of records. Where the database refuses it, the batch is halved until those records are found that fail
 * alone: one bad record must not keep all others out of the ledger.
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

/** Tries a record that failed alone again, while the database takes another one. */
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
  // Never the error's message: a database's words may quote the row, and with it tags of the caller.
  const { name, code } = error as { name?: unknown; code?: unknown };
  log.error({ job: item.record.id, error: name, code }, 'database rejected a job record; it is quarantined');
  return { refused: [item], postponed: [] };
}

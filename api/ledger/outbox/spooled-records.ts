import { parseRecord } from '../../../shared/jobs/settlement/outbox.ts';
import type { LedgerItem } from '../job-ledger.ts';
import type { OutboxEntry } from './outbox-group.ts';

/** An entry of an outbox that can be read. */
export interface ReadableEntry {
  readonly entry: OutboxEntry;
  readonly item: LedgerItem;
}

/** A line of the spool: an entry as it stood in its outbox, and the answer that goes with it. */
interface SpooledLine {
  readonly v: 1;
  readonly key: string;
  readonly text: string;
  readonly charge?: string | undefined;
  readonly late?: string | undefined;
  readonly answer?: LedgerItem['answer'];
}

/** Reads an entry; undefined where it is another version's. */
export function readEntry(entry: OutboxEntry): ReadableEntry | undefined {
  const record = entry.text === undefined ? undefined : parseRecord(entry.text, entry.charge, entry.late);
  return record && { entry, item: { record } };
}

/** An entry as a line of the spool. @param item with its answer, where one is kept */
export function spooledLine({ key, text = '', charge, late }: OutboxEntry, { answer }: LedgerItem): string {
  return JSON.stringify({ v: 1, key, text, charge, late, answer } satisfies SpooledLine);
}

/** A line of the spool as an entry, and what it is of the ledger where this version can read it; undefined: it is no line. */
export function readSpooledLine(
  line: string,
): { readonly entry: OutboxEntry; readonly item: LedgerItem | undefined } | undefined {
  let value: SpooledLine;
  try {
    value = JSON.parse(line) as SpooledLine;
  } catch {
    return undefined;
  }
  const { v, key, text, charge, late, answer } = value ?? {};
  if (v !== 1 || typeof key !== 'string' || typeof text !== 'string') return undefined;
  const entry = { key, id: '', text, charge, late };
  const read = readEntry(entry);
  return { entry, item: read && { ...read.item, isRead: true, ...(answer && { answer }) } };
}

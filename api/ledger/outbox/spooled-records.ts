import { parseRecord } from '../../../shared/jobs/settlement/outbox.ts';
import { isReadable, versionOf } from '../../../shared/runtime/wire-version.ts';
import type { LedgerItem } from '../job-ledger.ts';
import type { OutboxEntry } from './outbox-group.ts';

/** A readable entry of an outbox. */
export interface ReadableEntry {
  readonly entry: OutboxEntry;
  readonly item: LedgerItem;
}

/** A line of the spool: an outbox entry unchanged, and its answer. */
interface SpooledLine {
  /** Version of the line; its record has one of its own. */
  readonly v: number;
  readonly key: string;
  readonly text: string;
  readonly charge?: string | undefined;
  readonly late?: string | undefined;
  readonly answer?: LedgerItem['answer'];
}

/** Parses an entry. Returns undefined if it has another version. */
export function readEntry(entry: OutboxEntry): ReadableEntry | undefined {
  const record = entry.text === undefined ? undefined : parseRecord(entry.text, entry.charge, entry.late);
  return record && { entry, item: { record } };
}

/** Formats an entry as a line of the spool. @param item with its answer, if one is kept */
export function spooledLine({ key, text = '', charge, late }: OutboxEntry, { answer }: LedgerItem): string {
  return JSON.stringify({ v: versionOf(), key, text, charge, late, answer } satisfies SpooledLine);
}

/** Parses a line of the spool: its entry, and its item if this version can read it. Undefined for a malformed line. */
export function readSpooledLine(
  line: string,
): { readonly entry: OutboxEntry; readonly item: LedgerItem | undefined } | 'other_version' | undefined {
  let value: SpooledLine;
  try {
    value = JSON.parse(line) as SpooledLine;
  } catch {
    return undefined;
  }
  const { v, key, text, charge, late, answer } = value ?? {};
  if (!isReadable(v)) return 'other_version';
  if (typeof key !== 'string' || typeof text !== 'string') return undefined;
  const entry = { key, id: '', text, charge, late };
  const read = readEntry(entry);
  return { entry, item: read && { ...read.item, isRead: true, ...(answer && { answer }) } };
}

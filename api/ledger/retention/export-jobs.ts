import { randomUUID } from 'node:crypto';
import { pipeline, Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import type { Selectable } from 'kysely';
import type { Blobs } from '../../../shared/blobs/blobs.ts';
import type { Database } from '../../../shared/database/database.ts';
import type { JobsTable } from '../../../shared/database/tables.ts';
import { csvLine } from '../../http/csv-line.ts';
import { jobColumns } from '../job-rows.ts';

/** Formats in which rows are exported. */
export type ExportFormat = 'csv' | 'jsonl';

/** Rows read at a time. They are deleted as they were read, so this is low: other writers must get through. */
const pageRows = 500;

/** Ids from `from`, inclusive, to `to`, exclusive. */
export interface IdRange {
  readonly from: string;
  readonly to: string;
}

/** Exported rows: all ended jobs from the first to the last id, inclusive, at the time of reading. */
export interface ExportedPage {
  readonly first: string;
  readonly last: string;
  readonly rows: number;
}

/** What was exported. */
export interface Export {
  /** Name of the file in the storage of files. */
  readonly file: string;
  readonly rows: number;
  /** In order of ids. Rows that came later are in none, or make one differ. */
  readonly pages: readonly ExportedPage[];
}

/**
 * Writes the rows of a day's ended jobs into a compressed file `exports/jobs-DAY-ID.FORMAT.gz`. Each export has a file of its own: one that
 * is repeated replaces nothing.
 * @param day `YYYY-MM-DD`
 * @throws Error of the database or the storage; then there is no file
 */
export async function exportJobs(
  { db, blobs }: { readonly db: Database; readonly blobs: Pick<Blobs, 'writeExport'> },
  format: ExportFormat,
  day: string,
  range: IdRange,
): Promise<Export> {
  const file = `jobs-${day}-${randomUUID().slice(0, 8)}.${format}.gz`;
  const pages: ExportedPage[] = [];
  async function* lines(): AsyncGenerator<string> {
    if (format === 'csv') yield csvLine(jobColumns);
    for await (const read of readRows(db, range)) {
      pages.push({ first: idAt(read, 0), last: idAt(read, -1), rows: read.length });
      yield read.map(format === 'csv' ? csvRow : jsonLine).join('');
    }
  }
  // A failure of the source ends the compressed stream with the same error.
  const compressed = pipeline(Readable.from(lines()), createGzip(), () => undefined);
  await blobs.writeExport(file, compressed);
  return { file, rows: rowsOf(pages), pages };
}

/** Number of rows of the pages together. */
export function rowsOf(pages: readonly ExportedPage[]): number {
  return pages.reduce((sum, { rows }) => sum + rows, 0);
}

async function* readRows(db: Database, { from, to }: IdRange): AsyncGenerator<Selectable<JobsTable>[]> {
  const ended = db.selectFrom('jobs').select(jobColumns).where('outcome', 'is not', null);
  const range = ended.where('id', '<', to).orderBy('id').limit(pageRows);
  let rows = await range.where('id', '>=', from).execute();
  while (rows.length > 0) {
    yield rows;
    rows = await range.where('id', '>', idAt(rows, -1)).execute();
  }
}

function idAt(rows: readonly Selectable<JobsTable>[], index: number): string {
  return (rows.at(index) as { id: string }).id;
}

function jsonLine(row: Selectable<JobsTable>): string {
  return `${JSON.stringify(row)}\n`;
}

function csvRow(row: Selectable<JobsTable>): string {
  return csvLine(jobColumns.map((column) => row[column]));
}

import { pipeline } from 'node:stream/promises';
import type { Middleware } from 'koa';
import type { Database } from '../../../shared/database/database.ts';
import { ApiError } from '../../../shared/errors.ts';
import { readErrorDetails } from '../../../shared/jobs/settlement/error-details.ts';
import { formatDollars } from '../../../shared/money/cost.ts';
import { recordedTier } from '../../../shared/money/service-tier.ts';
import { BoundedReads, readMs } from '../../bounds/bounded-reads.ts';
import { askingAccount, type FairReads } from '../../bounds/fair-reads.ts';
import { csvLine } from '../../http/csv-line.ts';
import { type JobFilter, type ListedRow, listJobs } from '../../ledger/job-list.ts';
import { ClientConnection, type Handover, stalledMs } from '../../replies/client-connection.ts';
import type { State } from '../../state.ts';
import { type AccountOf, readJobFilter } from './jobs.ts';

/** Jobs of a page that is read from the database. */
const pageJobs = 500;

const time = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());

/** The columns by their heading. */
const columns: Readonly<Record<string, (row: ListedRow) => string | number | null>> = {
  id: ({ id }) => `job_${id}`,
  status: ({ outcome }) => outcome ?? 'unfinished',
  account_id: ({ account_id: account }) => account,
  endpoint: ({ endpoint }) => endpoint,
  capability: ({ capability }) => capability,
  model: ({ model }) => model,
  served_model: ({ served_model: served }) => served,
  vendor: ({ vendor }) => vendor,
  service_tier: ({ usage }) => (usage === null ? null : recordedTier(JSON.parse(usage))),
  key_id: ({ api_key_id: key }) => key,
  key_name: ({ key_name: name }) => name,
  stream: ({ stream }) => stream,
  attempts: ({ attempts }) => attempts,
  created_at: ({ created_at: created }) => time(created),
  began_at: ({ began_at: began }) => time(began),
  first_at: ({ first_at: first }) => time(first),
  ended_at: ({ ended_at: ended }) => time(ended),
  error_code: ({ error_code: code }) => code,
  error_message: ({ error_details: details }) => readErrorDetails(details)?.message ?? null,
  error_param: ({ error_details: details }) => readErrorDetails(details)?.param ?? null,
  vendor_status: ({ error_details: details }) => readErrorDetails(details)?.vendorStatus ?? null,
  input_tokens: ({ input_tokens: tokens }) => tokens,
  output_tokens: ({ output_tokens: tokens }) => tokens,
  cost_dollars: ({ cost }) => (cost === null ? null : formatDollars(cost)),
  vendor_cost_dollars: ({ vendor_cost: cost }) => (cost === null ? null : formatDollars(cost)),
  metadata: ({ metadata }) => metadata,
};

/**
 * `GET …/jobs.csv`: all jobs that match the filters, newest first, as a file. Each page is read when the client has received
 * the one before, so the memory does not depend on the length. Times are ISO 8601, costs dollars.
 * @throws ApiError 503 while nothing is sent; later errors close the connection, and the client sees an incomplete file.
 */
export function jobsCsv(
  services: { readonly handover: Handover; readonly fairReads: FairReads },
  db: Database,
  accountOf: AccountOf,
): Middleware<State> {
  const reads = new BoundedReads(readMs, 'Jobs cannot be read for now.');
  return async (ctx) => {
    ctx.state.endpoint = 'job.csv';
    const filter = readJobFilter(ctx.query, accountOf(ctx));
    const account = askingAccount(ctx);
    const connection = new ClientConnection(ctx.res, services.handover);
    try {
      const readNext = (after?: string) => services.fairReads.read(account, () => readPage(db, filter, after));
      const read = (after?: string) => connection.wait(reads.read(() => readNext(after)));
      const first = await read();
      ctx.status = 200;
      ctx.set({
        'content-type': 'text/csv; charset=utf-8',
        'content-disposition': 'attachment; filename="jobs.csv"',
        'x-content-type-options': 'nosniff',
      });
      ctx.respond = false;
      ctx.res.setTimeout(stalledMs, () => ctx.res.destroy());
      await pipeline(lines(first, read), ctx.res);
    } catch (error) {
      throw ctx.res.closed ? new ApiError('cancelled', 'The client left before the file was complete.') : error;
    } finally {
      connection.close();
    }
  };
}

function readPage(db: Database, filter: JobFilter, after: string | undefined): Promise<ListedRow[]> {
  return listJobs(db, filter, { limit: pageJobs, after });
}

/** The text of the file, a page at a time. */
async function* lines(first: ListedRow[], read: (after: string) => Promise<ListedRow[]>): AsyncGenerator<string> {
  yield csvLine(Object.keys(columns));
  for (let page = first; ; ) {
    const text = page.map((row) => csvLine(Object.values(columns).map((cell) => cell(row)))).join('');
    if (text !== '') yield text;
    const last = page.at(-1);
    if (last === undefined || page.length < pageJobs) return;
    page = await read(last.id);
  }
}

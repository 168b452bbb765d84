import type { ParsedUrlQuery } from 'node:querystring';
import type { Middleware } from 'koa';
import { capabilities } from '../../../shared/capabilities/capability.ts';
import type { Database } from '../../../shared/database/database.ts';
import { ApiError } from '../../../shared/errors.ts';
import { jobIdFromWire } from '../../../shared/ids.ts';
import { readJobState } from '../../../shared/jobs/job-state.ts';
import type { EndJobContext } from '../../../shared/jobs/settlement/end-job.ts';
import { BoundedReads, readMs } from '../../bounds/bounded-reads.ts';
import type { FindJobDependencies } from '../../endpoints/jobs/jobs.ts';
import { cancelJob, withJob } from '../../endpoints/jobs/jobs.ts';
import { readAfterJob, readPageQuery } from '../../http/page.ts';
import { readText, readTime, readWord } from '../../http/read-query.ts';
import { findListedJob, type JobFilter, jobStatuses, type ListedRow, listJobs } from '../../ledger/job-list.ts';
import type { Context, State } from '../../state.ts';
import { type ConsoleJob, consoleJob, consoleJobs, keyNames, rowOfState } from './console-job.ts';
import { type LiveJobFilter, readLiveJobs } from './live-jobs.ts';
import { readTag } from './read-tag.ts';

/** Dependencies of the console's routes of jobs. */
export interface JobsDependencies extends FindJobDependencies, EndJobContext {}

const pageLimits = { usual: 50, most: 100 };
const maxLive = 200;

const liveStatuses = ['queued', 'in_progress'] as const;

/** Parameters of the lists of jobs, besides their page. */
export const jobFilters = [
  ...(['status', 'model', 'key', 'endpoint', 'vendor', 'capability', 'tag', 'from', 'to'] as const),
] as const;
export const liveFilters = ['status', 'capability', 'key', 'model', 'endpoint'] as const;

/** Returns the account whose jobs a request may see; undefined for all. */
export type AccountOf = (ctx: Context) => string | undefined;

/** Reads the filters of job lists. @throws ApiError 400 that names the parameter. */
export function readJobFilter(query: ParsedUrlQuery, account: string | undefined): JobFilter {
  return {
    account,
    status: readWord(query, 'status', jobStatuses),
    model: readText(query, 'model'),
    key: readText(query, 'key'),
    endpoint: readText(query, 'endpoint'),
    vendor: readText(query, 'vendor'),
    capability: readText(query, 'capability'),
    tag: readTag(query),
    from: readTime(query, 'from'),
    to: readTime(query, 'to'),
  };
}

function readLiveFilter(query: ParsedUrlQuery, account: string | undefined): LiveJobFilter {
  return {
    account,
    status: readWord(query, 'status', liveStatuses),
    capability: readWord(query, 'capability', capabilities),
    key: readText(query, 'key'),
    model: readText(query, 'model'),
    endpoint: readText(query, 'endpoint'),
  };
}

/** `GET …/jobs`: ended jobs, and those unfinished that the database knows, newest first. */
export function jobList(services: JobsDependencies, db: Database, accountOf: AccountOf): Middleware<State> {
  const reads = newReads();
  return async (ctx) => {
    ctx.state.endpoint = 'job.list';
    const { limit, after } = readPageQuery(ctx.query, pageLimits);
    const filter = readJobFilter(ctx.query, accountOf(ctx));
    const page = { limit: limit + 1, after: readAfterJob(after) };
    const rows = await reads.read(() => listJobs(db, filter, page));
    const data = await reads.read(() => consoleJobs(services.redis, rows.slice(0, limit)));
    const hasMore = rows.length > limit;
    ctx.body = { object: 'list', data, has_more: hasMore, next: hasMore ? data.at(-1)?.id : null };
  };
}

/** `GET …/jobs/live`: the unfinished jobs, newest first, plain ones too. */
export function liveJobs({ redis }: JobsDependencies, db: Database, accountOf: AccountOf): Middleware<State> {
  const reads = newReads();
  return async (ctx) => {
    ctx.state.endpoint = 'job.live';
    const filter = readLiveFilter(ctx.query, accountOf(ctx));
    const { jobs, hasMore } = await reads.read(() => readLiveJobs(redis, filter, maxLive));
    const ids = jobs.map(({ apiKeyId }) => apiKeyId);
    const names = await reads.read(() => keyNames(db, ids));
    const data = jobs.map((job) => consoleJob(rowOfState(job, names.get(job.apiKeyId) ?? null), job));
    ctx.body = { object: 'list', data, has_more: hasMore, next: null };
  };
}

/** `GET …/jobs/{id}`: one job, by its row, or by its state where there is no row yet. */
export function oneJob(services: JobsDependencies, db: Database, accountOf: AccountOf): Middleware<State> {
  const reads = newReads();
  return async (ctx) => {
    ctx.state.endpoint = 'job';
    ctx.body = await findJob(services, db, reads, ctx.params.id as string, accountOf(ctx));
  };
}

/**
 * `DELETE …/jobs/{id}`: cancels a job and returns it, unchanged if it had ended.
 * @param by who cancelled it, for the error message
 */
export function cancelOneJob(
  services: JobsDependencies,
  db: Database,
  accountOf: AccountOf,
  by: 'its owner' | 'an operator',
): Middleware<State> {
  const reads = newReads();
  return async (ctx) => {
    ctx.state.endpoint = 'job.cancel';
    await withJob(services, ctx, accountOf(ctx), async (state, connection) => {
      const ended = await cancelJob(services, state, connection, `The job was cancelled by ${by}.`);
      const row = await reads.read(() => findRow(services, db, state.id));
      ctx.body = row === undefined ? consoleJob(rowOfState(ended, null), ended) : consoleJob(row, ended);
    });
  };
}

/** Finds a job by its wire id. @throws ApiError 404 for an unknown job, and for another account's; 503. */
async function findJob(
  services: JobsDependencies,
  db: Database,
  reads: BoundedReads,
  wireId: string,
  account: string | undefined,
): Promise<ConsoleJob> {
  const id = jobIdFromWire(wireId);
  const row = id === undefined ? undefined : await reads.read(() => findRow(services, db, id));
  if (row === undefined || (account !== undefined && row.account_id !== account)) {
    throw new ApiError('not_found', 'No such job.');
  }
  const [job] = await reads.read(() => consoleJobs(services.redis, [row]));
  return job as ConsoleJob;
}

/** A job by its row, or by its state where there is no row yet; whosever it is. */
export async function findRow({ redis }: JobsDependencies, db: Database, id: string): Promise<ListedRow | undefined> {
  const row = await findListedJob(db, id);
  if (row !== undefined) return row;
  const state = await readJobState(redis, id);
  if (state === undefined) return undefined;
  const names = await keyNames(db, [state.apiKeyId]);
  return rowOfState(state, names.get(state.apiKeyId) ?? null);
}

function newReads(): BoundedReads {
  return new BoundedReads(readMs, 'Jobs cannot be read for now.');
}

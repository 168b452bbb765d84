import type { Middleware } from 'koa';
import type { Database } from '../../shared/database/database.ts';
import type { ErrorCode } from '../../shared/errors.ts';
import { BoundedReads } from '../bounded-reads.ts';
import { type ConsoleJob, consoleJobs } from '../console-api/console-job.ts';
import { jobStatuses, readAfter } from '../console-api/jobs.ts';
import { readText, readWord } from '../console-api/read-query.ts';
import { listJobs } from '../ledger/job-list.ts';
import type { Services } from '../services.ts';
import type { State } from '../state.ts';
import { type JobObject, jobUrls, unreadable } from './job-object.ts';
import { pageOf, readPageQuery } from './page.ts';

/** How long database and Redis may take. */
const readMs = 5000;

/** A job in a list: as `GET /v1/jobs/{id}` shows it, but for its result and its place in the queue. */
export type ListedJob = Omit<JobObject, 'result' | 'queue_position'> & {
  readonly input_tokens: number | null;
  readonly output_tokens: number | null;
  readonly metadata: ConsoleJob['metadata'];
};

/**
 * `GET /v1/jobs`: the jobs of the key's account, newest first: those that have ended, and of the unfinished ones those that
 * the database knows (background, asynchronous, keyed and media jobs).
 */
export function listOwnJobs(services: Services, db: Database): Middleware<State> {
  const reads = new BoundedReads(readMs, 'Jobs cannot be read for now.');
  return async (ctx) => {
    ctx.state.endpoint = 'jobs.list';
    const { limit, order, after } = readPageQuery(ctx.query, { usual: 20, most: 100 });
    const filter = {
      account: ctx.state.caller.account,
      status: readWord(ctx.query, 'status', jobStatuses),
      model: readText(ctx.query, 'model'),
    };
    const page = { limit: limit + 1, order, after: after === undefined ? undefined : readAfter(after) };
    const rows = await reads.read(() => listJobs(db, filter, page));
    const jobs = await reads.read(() => consoleJobs(services.redis, rows.slice(0, limit)));
    const baseUrl = services.baseUrls.of(ctx.req);
    const data = jobs.map((job) => listedJob(baseUrl, job));
    ctx.body = { ...pageOf(data, limit), has_more: rows.length > limit };
  };
}

function listedJob(baseUrl: string, job: ConsoleJob): ListedJob {
  return {
    id: job.id,
    object: 'job',
    status: job.status,
    endpoint: job.endpoint,
    model: job.model,
    created_at: Math.floor(job.created_at / 1000),
    started_at: seconds(job.began_at),
    finished_at: seconds(job.ended_at),
    urls: jobUrls(baseUrl, { id: job.id.slice('job_'.length) }),
    usage: job.usage,
    input_tokens: job.input_tokens,
    output_tokens: job.output_tokens,
    cost: job.cost,
    vendor_cost: job.vendor_cost,
    error: job.error_code === null ? null : unreadable(job.error_code as ErrorCode),
    metadata: job.metadata,
  };
}

function seconds(ms: number | null): number | null {
  return ms === null ? null : Math.floor(ms / 1000);
}

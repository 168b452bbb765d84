import type { Middleware } from 'koa';
import type { Database } from '../../../shared/database/database.ts';
import type { ErrorCode } from '../../../shared/errors.ts';
import { recordedError } from '../../../shared/jobs/settlement/error-details.ts';
import type { RedisClient } from '../../../shared/redis/redis.ts';
import { BoundedReads, readMs } from '../../bounds/bounded-reads.ts';
import { pageOf, readAfterJob, readPageQuery } from '../../http/page.ts';
import { readText, readWord } from '../../http/read-query.ts';
import type { BaseUrls } from '../../http/request-address.ts';
import { jobStatuses, type ListedRow, listJobs } from '../../ledger/job-list.ts';
import { type ConsoleJob, consoleJob } from '../../management/console/console-job.ts';
import { readProgress } from '../../management/console/live-jobs.ts';
import { describeError, type JobObject, jobUrls } from '../../pipeline/job-object.ts';
import type { State } from '../../state.ts';

/** A job in a list: as in `GET /v1/jobs/{id}`, without its result and its queue position. */
type ListedJob = Omit<JobObject, 'result' | 'queue_position' | 'expected_wait_seconds'> & {
  readonly input_tokens: number | null;
  readonly output_tokens: number | null;
  readonly metadata: ConsoleJob['metadata'];
};

/**
 * `GET /v1/jobs`: the jobs of the key's account, newest first: ended ones, and unfinished ones that are in the database
 * (background, asynchronous, keyed and media jobs).
 */
export function listOwnJobs(
  services: { readonly baseUrls: BaseUrls; readonly redis: RedisClient },
  db: Database,
): Middleware<State> {
  const reads = new BoundedReads(readMs, 'Jobs cannot be read for now.');
  return async (ctx) => {
    ctx.state.endpoint = 'jobs.list';
    const { limit, order, after } = readPageQuery(ctx.query, { usual: 20, most: 100 });
    const filter = {
      account: ctx.state.caller.account,
      status: readWord(ctx.query, 'status', jobStatuses),
      model: readText(ctx.query, 'model'),
    };
    const page = { limit: limit + 1, order, after: readAfterJob(after) };
    const rows = await reads.read(() => listJobs(db, filter, page));
    const baseUrl = services.baseUrls.of(ctx.req);
    const data = await reads.read(() =>
      Promise.all(rows.slice(0, limit).map((row) => readListedJob(services.redis, baseUrl, row))),
    );
    ctx.body = { ...pageOf(data, limit), has_more: rows.length > limit };
  };
}

/** Converts a row; an unfinished one with its progress in Redis. */
async function readListedJob(redis: RedisClient, baseUrl: string, row: ListedRow): Promise<ListedJob> {
  const progress = row.outcome === null ? await readProgress(redis, row.id) : undefined;
  const job = consoleJob(row, progress);
  const details = row.error_details ?? progress?.errorDetails;
  const error = recordedError((job.error_code ?? undefined) as ErrorCode | undefined, details);
  return {
    id: job.id,
    object: 'job',
    status: job.status,
    endpoint: job.endpoint,
    model: job.model,
    created_at: Math.floor(job.created_at / 1000),
    started_at: seconds(job.began_at),
    finished_at: seconds(job.ended_at),
    urls: jobUrls(baseUrl, row),
    usage: job.usage,
    service_tier: job.service_tier,
    input_tokens: job.input_tokens,
    output_tokens: job.output_tokens,
    cost: job.cost,
    vendor_cost: job.vendor_cost,
    error: job.error_code === null ? null : describeError(error),
    metadata: job.metadata,
  };
}

function seconds(ms: number | null): number | null {
  return ms === null ? null : Math.floor(ms / 1000);
}

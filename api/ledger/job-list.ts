import { type Selectable, sql } from 'kysely';
import type { Database } from '../../shared/database/database.ts';
import type { JobsTable } from '../../shared/database/tables.ts';
import { type JobTag, tagCondition } from './job-tags.ts';
import { hourMs } from './usage/usage-hours.ts';
import { firstIdAt } from './usage/usage-report.ts';

/** Values of `status` in lists of jobs: the outcome of a job, or that the database knows none yet. */
export const jobStatuses = ['completed', 'failed', 'cancelled', 'unfinished'] as const;

/** Filter of a job list. Undefined fields match all jobs. */
export interface JobFilter {
  readonly account: string | undefined;
  readonly status?: (typeof jobStatuses)[number] | undefined;
  readonly model?: string | undefined;
  readonly key?: string | undefined;
  readonly endpoint?: string | undefined;
  readonly vendor?: string | undefined;
  readonly capability?: string | undefined;
  readonly tag?: JobTag | undefined;
  /** Creation time in ms since 1970: `from` is inclusive, `to` exclusive. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/** A job's row with further data for the console. */
export interface ListedRow extends Selectable<JobsTable> {
  readonly key_name: string | null;
  /** 1 while its request and answer are kept, else 0. */
  readonly has_body: number;
}

/** The requested page of a job list. */
export interface JobPage {
  readonly limit: number;
  /** The job after which the page begins. */
  readonly after: string | undefined;
  /** Newest first by default. */
  readonly order?: 'asc' | 'desc';
}

/**
 * Lists a page of jobs after `after`; newest first, so new jobs come before every page. The ids are found first, from an
 * index alone if it covers the filter, and only rows of the page are looked up.
 */
export async function listJobs(db: Database, filter: JobFilter, page: JobPage): Promise<ListedRow[]> {
  return await withNames(db)
    .where('jobs.id', 'in', (from) =>
      from.selectFrom(idsOf(db, filter, page).limit(page.limit).as('page')).select('page.id'),
    )
    .orderBy('jobs.id', page.order ?? 'desc')
    .execute();
}

/** Returns one job's row, of any account, or undefined if the database has none. */
export async function findListedJob(db: Database, id: string): Promise<ListedRow | undefined> {
  return await withNames(db).where('jobs.id', '=', id).executeTakeFirst();
}

function withNames(db: Database) {
  return db
    .selectFrom('jobs')
    .leftJoin('api_keys', 'api_keys.id', 'jobs.api_key_id')
    .leftJoin('job_bodies', 'job_bodies.job_id', 'jobs.id')
    .selectAll('jobs')
    .select('api_keys.name as key_name')
    .select(
      sql<number>`case when job_bodies.deleted_at is null and job_bodies.expires_at > ${Date.now()}
        and (job_bodies.answer is not null or job_bodies.answer_blob is not null
          or job_bodies.request is not null or job_bodies.request_blob is not null)
        then 1 else 0 end`.as('has_body'),
    );
}

function idsOf(
  db: Database,
  { account, status, model, key, endpoint, vendor, capability, tag, from, to }: JobFilter,
  { after, order = 'desc' }: JobPage,
) {
  let ids = db.selectFrom('jobs').select('id').orderBy('id', order);
  if (account !== undefined) ids = ids.where('account_id', '=', account);
  if (status === 'unfinished') ids = ids.where('outcome', 'is', null);
  else if (status !== undefined) ids = ids.where('outcome', '=', sql.lit(status));
  // The condition of the partial index that has only these.
  if (status === 'failed' || status === 'cancelled') ids = ids.where(sql<boolean>`outcome in ('failed', 'cancelled')`);
  if (model !== undefined) ids = ids.where('model', '=', model);
  if (key !== undefined) ids = ids.where('api_key_id', '=', key);
  if (endpoint !== undefined) ids = ids.where('endpoint', '=', endpoint);
  if (vendor !== undefined) ids = ids.where('vendor', '=', vendor);
  if (capability !== undefined) ids = ids.where('capability', '=', capability);
  if (tag !== undefined) ids = ids.where(tagCondition(tag));
  if (after !== undefined) ids = ids.where('id', order === 'desc' ? '<' : '>', after);
  // Ids sort by arrival of the request. A job is made once its request is read, which may be later.
  if (from !== undefined) ids = ids.where('id', '>=', firstIdAt(from - hourMs)).where('created_at', '>=', from);
  if (to !== undefined) ids = ids.where('id', '<', firstIdAt(to)).where('created_at', '<', to);
  return ids;
}

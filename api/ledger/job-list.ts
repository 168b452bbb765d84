import { type Selectable, sql } from 'kysely';
import type { Database } from '../../shared/database/database.ts';
import type { JobsTable } from '../../shared/database/tables.ts';
import type { Outcome } from '../../shared/jobs/job-state.ts';
import { type JobTag, tagCondition } from './job-tags.ts';
import { hourMs } from './usage/usage-hours.ts';
import { firstIdAt } from './usage/usage-report.ts';

/** Which jobs to list. What is undefined leaves nothing out. */
export interface JobFilter {
  readonly account: string | undefined;
  /** How they have ended; `unfinished`: not at all, as far as the database knows them yet. */
  readonly status?: Outcome | 'unfinished' | undefined;
  readonly model?: string | undefined;
  readonly key?: string | undefined;
  readonly endpoint?: string | undefined;
  readonly vendor?: string | undefined;
  readonly capability?: string | undefined;
  readonly tag?: JobTag | undefined;
  /** When they were made, in ms since 1970: from the one time on, before the other. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/** A job's row with what a console shows beside it. */
export interface ListedRow extends Selectable<JobsTable> {
  readonly key_name: string | null;
  /** 1 while its request and answer are kept, else 0. */
  readonly has_body: number;
}

/** Which part of a list of jobs is asked for. */
export interface JobPage {
  readonly limit: number;
  /** The job behind which the page begins. */
  readonly after: string | undefined;
  /** Left out: the newest first. */
  readonly order?: 'asc' | 'desc';
}

/**
 * A page of jobs, from the one behind `after` on; newest first, new jobs come before every page. The ids are found first,
 * from an index alone where it knows the columns asked for; only those of the page are looked up.
 */
export async function listJobs(db: Database, filter: JobFilter, page: JobPage): Promise<ListedRow[]> {
  return await withNames(db)
    .where('jobs.id', 'in', (from) =>
      from.selectFrom(idsOf(db, filter, page).limit(page.limit).as('page')).select('page.id'),
    )
    .orderBy('jobs.id', page.order ?? 'desc')
    .execute();
}

/** One job's row, of whichever account; undefined where the database does not know it. */
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
  // The words of the index that has only these.
  if (status === 'failed' || status === 'cancelled') ids = ids.where(sql<boolean>`outcome in ('failed', 'cancelled')`);
  if (model !== undefined) ids = ids.where('model', '=', model);
  if (key !== undefined) ids = ids.where('api_key_id', '=', key);
  if (endpoint !== undefined) ids = ids.where('endpoint', '=', endpoint);
  if (vendor !== undefined) ids = ids.where('vendor', '=', vendor);
  if (capability !== undefined) ids = ids.where('capability', '=', capability);
  if (tag !== undefined) ids = ids.where(tagCondition(tag));
  if (after !== undefined) ids = ids.where('id', order === 'desc' ? '<' : '>', after);
  // Ids sort by the time at which requests came; a job is made once its request is read.
  if (from !== undefined) ids = ids.where('id', '>=', firstIdAt(from - hourMs)).where('created_at', '>=', from);
  if (to !== undefined) ids = ids.where('id', '<', firstIdAt(to)).where('created_at', '<', to);
  return ids;
}

import { unlessMissing } from '../../shared/blobs/blob-storage.ts';
import type { Blobs } from '../../shared/blobs/blobs.ts';
import type { Database } from '../../shared/database/database.ts';
import type { Frame } from '../../shared/jobs/append.ts';
import { forgetResource } from '../../shared/jobs/forget.ts';
import { type JobState, readJobState } from '../../shared/jobs/job-state.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import { BoundedReads } from '../bounds/bounded-reads.ts';
import { viewOptionsBlob } from '../replies/view.ts';
import { framesOfBatch } from './final-answer.ts';
import { stateOfRow } from './job-rows.ts';

/** Timeout for reading a job from the database or a large answer from the blob storage. */
const readMs = 3000;
const unavailable = 'Stored jobs cannot be read for now.';

/** Query for resources. */
export interface ResourceList {
  readonly account: string;
  /** Names of the endpoints that make them. */
  readonly endpoints: readonly string[];
  readonly limit: number;
  readonly order: 'asc' | 'desc';
  /** Id of the job after which the list begins. */
  readonly after: string | undefined;
}

/** Reads jobs and answers that Redis no longer has. */
export class StoredJobs {
  readonly #db: Database;
  readonly #redis: RedisClient;
  readonly #blobs: Blobs;
  readonly #rows = new BoundedReads(readMs, unavailable);
  readonly #texts = new BoundedReads(readMs, unavailable, 'disk');

  readonly #retentionMs: number;

  /** @param retentionMs how long bodies stay in the database, in ms */
  constructor(
    { db, redis, blobs }: { readonly db: Database; readonly redis: RedisClient; readonly blobs: Blobs },
    retentionMs: number,
  ) {
    this.#retentionMs = retentionMs;
    this.#db = db;
    this.#redis = redis;
    this.#blobs = blobs;
  }

  /**
   * Returns a job by its state in Redis or else by its row, or undefined when it is unknown or deleted by its owner. Once
   * its bodies have expired its view options are `{}`.
   * @throws ApiError 503 when the database is needed and does not respond.
   */
  async find(jobId: string): Promise<JobState | undefined> {
    const state = await readJobState(this.#redis, jobId);
    if (state === undefined) return await this.#findRow(jobId);
    return state.isDeleted ? undefined : state;
  }

  /** Returns a job by its row, if it has ended. @throws ApiError 503 when the database does not respond. */
  async findEnded(jobId: string): Promise<JobState | undefined> {
    const job = await this.#findRow(jobId);
    return job?.outcome === undefined ? undefined : job;
  }

  /**
   * Lists an account's resources of one kind, except deleted and expired ones, each as `find` returns it.
   * @throws ApiError 503 when the database does not respond.
   */
  async list({ account, endpoints, limit, order, after }: ResourceList): Promise<JobState[]> {
    const rows = await this.#rows.read(() => {
      const query = this.#db
        .selectFrom('jobs')
        .innerJoin('job_bodies', 'job_bodies.job_id', 'jobs.id')
        .selectAll('jobs')
        .select('job_bodies.view_options')
        .where('jobs.account_id', '=', account)
        .where('jobs.endpoint', 'in', endpoints)
        .where('jobs.retention_ms', '>', 0)
        .where('job_bodies.deleted_at', 'is', null)
        .where('job_bodies.expires_at', '>', Date.now())
        .orderBy('jobs.id', order)
        .limit(limit);
      return (after === undefined ? query : query.where('jobs.id', order === 'asc' ? '>' : '<', after)).execute();
    });
    const jobs: JobState[] = [];
    for (const { view_options: viewOptions, ...row } of rows) {
      // Only the state has the progress of an unfinished job.
      const state = row.outcome === null ? await readJobState(this.#redis, row.id) : undefined;
      jobs.push(state ?? stateOfRow(row, viewOptions));
    }
    return jobs;
  }

  async #findRow(jobId: string): Promise<JobState | undefined> {
    const row = await this.#rows.read(() =>
      this.#db
        .selectFrom('jobs')
        .leftJoin('job_bodies', 'job_bodies.job_id', 'jobs.id')
        .selectAll('jobs')
        .select(['job_bodies.view_options', 'job_bodies.deleted_at', 'job_bodies.expires_at'])
        .where('jobs.id', '=', jobId)
        .executeTakeFirst(),
    );
    if (row === undefined || row.deleted_at !== null) return undefined;
    const isKept = row.expires_at !== null && row.expires_at > Date.now();
    return stateOfRow(row, (isKept && row.view_options) || '{}');
  }

  /**
   * Returns the request of a resource as it was queued, or undefined if it is not (or no longer) kept.
   * @param job as `find` returned it
   * @param onSize called with the bytes of a large one before they are read; what it throws ends the read
   * @throws ApiError 503 when the database does not respond.
   */
  async findRequest(job: JobState, onSize: (bytes: number) => void = () => undefined): Promise<string | undefined> {
    if (job.request !== undefined) return job.request;
    const row =
      job.requestBlob === undefined
        ? await this.#rows.read(() =>
            this.#db
              .selectFrom('job_bodies')
              .select(['request', 'request_blob'])
              .where('job_id', '=', job.id)
              .where('expires_at', '>', Date.now())
              .executeTakeFirst(),
          )
        : { request: null, request_blob: job.requestBlob };
    if (row === undefined) return undefined;
    const blob = row.request_blob;
    if (row.request !== null || blob === null) return row.request ?? undefined;
    return await this.#readText(job.account, blob, onSize);
  }

  async #readText(account: string, blob: string, onSize: (bytes: number) => void): Promise<string | undefined> {
    const blobs = this.#blobs.ofRecords(account);
    const bytes = await this.#texts.read(() => unlessMissing(blobs.size(blob)));
    if (bytes === undefined) return undefined;
    onSize(bytes);
    return await this.#texts.read(() => unlessMissing(blobs.text(blob)));
  }

  /**
   * Deletes the request, answer and given files of an ended resource; its row in the ledger stays. The row without bodies
   * keeps a record that is still on its way from restoring them.
   * @throws ApiError 503 when the database or the storage of files does not respond; then the resource still exists, maybe without its
   * files, or is gone on a retry.
   */
  async delete(job: JobState, files: readonly string[]): Promise<void> {
    const gone = { view_options: '{}', request: null, request_blob: null, answer: null, answer_blob: null };
    const now = Date.now();
    const row = { job_id: job.id, ...gone, deleted_at: now, expires_at: now + this.#retentionMs };
    const bodies = await this.#rows.read(() =>
      this.#db
        .selectFrom('job_bodies')
        .select(['request_blob', 'answer_blob'])
        .where('job_id', '=', job.id)
        .executeTakeFirst(),
    );
    const requests = [job.requestBlob, bodies?.request_blob];
    // Of an answer that was cut off just now, its worker counts the prompt.
    const mayBeCounted = job.outcome !== 'completed' && (job.usage ?? job.cost) === undefined;
    // First, as only a resource that exists can be deleted again.
    const blobs = [bodies?.answer_blob, ...files, ...(mayBeCounted ? [] : requests)];
    await this.#deleteBlobs(job.account, blobs);
    await this.#rows.read(() =>
      this.#db
        .insertInto('job_bodies')
        .values(row)
        .onConflict((conflict) => conflict.column('job_id').doUpdateSet({ ...gone, deleted_at: now }))
        .execute(),
    );
    const isBeingCounted = await forgetResource(this.#redis, job.id);
    if (mayBeCounted && !isBeingCounted) await this.#deleteBlobs(job.account, requests);
    // Without it the resource cannot be found. A leftover is swept.
    await this.#deleteBlobs(job.account, [viewOptionsBlob(job.viewOptions)]).catch(() => undefined);
  }

  async #deleteBlobs(account: string, blobs: readonly (string | null | undefined)[]): Promise<void> {
    const own = this.#blobs.ofRecords(account);
    const named = blobs.filter((blob) => blob != null);
    if (named.length > 0) await this.#texts.read(() => Promise.all(named.map((blob) => own.delete(blob))));
  }

  /**
   * Returns the frames that show a job's answer again, the last of them its terminal; undefined if none are kept.
   * @param onSize as of `findRequest`, and called for a small one, too
   * @throws ApiError 503 when the database does not respond.
   */
  async findAnswer(
    job: Pick<JobState, 'id' | 'account'>,
    onSize: (bytes: number) => void = () => undefined,
  ): Promise<Frame[] | undefined> {
    const row = await this.#rows.read(() =>
      this.#db
        .selectFrom('job_bodies')
        .select(['answer', 'answer_blob'])
        .where('job_id', '=', job.id)
        .where('expires_at', '>', Date.now())
        .executeTakeFirst(),
    );
    if (row === undefined) return undefined;
    if (row.answer !== null) {
      onSize(row.answer.length);
      return framesOfBatch(row.answer);
    }
    const blob = row.answer_blob;
    if (blob === null) return undefined;
    const text = await this.#readText(job.account, blob, onSize);
    return text === undefined ? undefined : framesOfBatch(text);
  }
}

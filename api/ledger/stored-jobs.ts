import type { Blobs } from '../../shared/blobs.ts';
import type { Database } from '../../shared/database/database.ts';
import type { Frame } from '../../shared/jobs/frames.ts';
import { type JobState, readJobState } from '../../shared/jobs/job-state.ts';
import type { RedisClient } from '../../shared/redis.ts';
import { BoundedReads } from '../bounded-reads.ts';
import { framesOfBatch, readBlobText } from './final-answer.ts';
import { stateOfRow } from './job-rows.ts';

/** How long the database, or the storage of a large answer, may take to show a job. */
const readMs = 3000;
const unavailable = 'Stored jobs cannot be read for now.';

/** Reads jobs and answers that Redis knows no more. */
export class StoredJobs {
  readonly #db: Database;
  readonly #redis: RedisClient;
  readonly #blobs: Blobs;
  readonly #rows = new BoundedReads(readMs, unavailable);
  readonly #texts = new BoundedReads(readMs, unavailable);

  constructor({ db, redis, blobs }: { db: Database; redis: RedisClient; blobs: Blobs }) {
    this.#db = db;
    this.#redis = redis;
    this.#blobs = blobs;
  }

  /**
   * A job, by its state in Redis or else by its row; undefined when neither knows it.
   * @throws ApiError 503 when the database is needed and does not answer.
   */
  async find(jobId: string): Promise<JobState | undefined> {
    return (await readJobState(this.#redis, jobId)) ?? (await this.#findRow(jobId));
  }

  /** A job by its row, if it has ended. @throws ApiError 503 when the database does not answer. */
  async findEnded(jobId: string): Promise<JobState | undefined> {
    const job = await this.#findRow(jobId);
    return job?.outcome === undefined ? undefined : job;
  }

  async #findRow(jobId: string): Promise<JobState | undefined> {
    const row = await this.#rows.read(() =>
      this.#db
        .selectFrom('jobs')
        .leftJoin('job_bodies', 'job_bodies.job_id', 'jobs.id')
        .selectAll('jobs')
        .select('job_bodies.view_options')
        .where('jobs.id', '=', jobId)
        .executeTakeFirst(),
    );
    return row && stateOfRow(row, row.view_options ?? '{}');
  }

  /**
   * The frames that show a job's answer again, the last of them its terminal; undefined where none are kept (any more).
   * @throws ApiError 503 when the database does not answer.
   */
  async findAnswer(jobId: string): Promise<Frame[] | undefined> {
    const row = await this.#rows.read(() =>
      this.#db
        .selectFrom('job_bodies')
        .select(['answer', 'answer_blob'])
        .where('job_id', '=', jobId)
        .where('expires_at', '>', Date.now())
        .executeTakeFirst(),
    );
    if (row === undefined) return undefined;
    if (row.answer !== null) return framesOfBatch(row.answer);
    const blob = row.answer_blob;
    if (blob === null) return undefined;
    const text = await this.#texts.read(() => readBlobText(this.#blobs, blob));
    return text === undefined ? undefined : framesOfBatch(text);
  }
}

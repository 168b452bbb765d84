import type { Database } from '../../shared/database/database.ts';
import { ApiError } from '../../shared/errors.ts';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import { codeOf } from '../../shared/runtime/error-code.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { bodyRow, openJobRow } from './job-rows.ts';

/** Time limit of a write before the caller gets a 503. A shared disk can stall for seconds. */
const patienceMs = 5000;
/** Limits of one statement: jobs, and characters of their requests. */
const batchJobs = 100;
const batchCharacters = 4 * 1024 * 1024;

/** SQLSTATE of a row that does not fit the constraint of its table, as that of a partition. */
const violatesPartition = '23514';

/** A job that waits for its row. */
interface WaitingJob {
  readonly job: JobIdentity;
  readonly request: string | undefined;
  readonly resolve: () => void;
  readonly reject: (error: ApiError) => void;
  /** Its caller got a 503, so it must leave no row. */
  isRefused: boolean;
}

/**
 * Writes the jobs that must be in the database before they are queued. Only one transaction runs at a time, for all jobs
 * that arrived during the previous one. A locked database therefore blocks one statement, not one per request.
 */
export class AcceptedJobs {
  readonly #db: Database;
  readonly #retentionMs: number;
  readonly #log: Logger;
  readonly #waiting: WaitingJob[] = [];
  /** Refused jobs that may have a row: it came too late, or its commit got no response. */
  #doubtful: string[] = [];
  #writing: Promise<void> | undefined;

  /** @param retentionMs how long request and answer stay in the database */
  constructor(db: Database, retentionMs: number, log: Logger) {
    this.#db = db;
    this.#retentionMs = retentionMs;
    this.#log = log;
  }

  /**
   * Inserts a job as unfinished.
   * @param job with its view options unpacked
   * @param request its text, if it is kept
   * @throws ApiError 503 when the database does not do it within 5 s; then no row stays, or the next write removes it.
   */
  async add(job: JobIdentity, request: string | undefined): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    try {
      await new Promise<void>((resolve, reject) => {
        const waiting: WaitingJob = { job, request, resolve, reject, isRefused: false };
        timer = setTimeout(() => this.#refuse(waiting), patienceMs);
        this.#waiting.push(waiting);
        this.#writing ??= this.#writeAll().finally(() => {
          this.#writing = undefined;
        });
      });
    } finally {
      clearTimeout(timer);
    }
  }

  /** Resolves when no write is in progress. */
  async close(): Promise<void> {
    await this.#writing;
  }

  #refuse(waiting: WaitingJob): void {
    waiting.isRefused = true;
    const index = this.#waiting.indexOf(waiting);
    if (index >= 0) this.#waiting.splice(index, 1);
    waiting.reject(unavailable());
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#take();
      try {
        await this.#removeDoubtful();
        await this.#insertInPartition(batch);
        for (const { resolve } of batch) resolve();
        this.#doubtful.push(...batch.filter(({ isRefused }) => isRefused).map(({ job }) => job.id));
        await this.#removeDoubtful();
      } catch (error) {
        this.#log.warn({ err: error, jobs: batch.length }, 'writing accepted jobs to the database failed');
        for (const { reject } of batch) reject(unavailable(error));
      }
    }
  }

  #take(): WaitingJob[] {
    let count = 0;
    let characters = 0;
    while (count < batchJobs && characters < batchCharacters && count < this.#waiting.length) {
      characters += this.#waiting[count++]?.request?.length ?? 0;
    }
    return this.#waiting.splice(0, count);
  }

  /** A fresh database gets its partitions beside the first jobs: a row that was on its way into the last one belongs to a new one then. */
  async #insertInPartition(batch: readonly WaitingJob[]): Promise<void> {
    try {
      await this.#insert(batch);
    } catch (error) {
      if (codeOf(error) !== violatesPartition) throw error;
      await this.#insert(batch);
    }
  }

  async #insert(batch: readonly WaitingJob[]): Promise<void> {
    const rows = batch.map(({ job }) => openJobRow(job));
    const bodies = batch
      .filter(({ job }) => job.retentionMs > 0)
      .map(({ job, request }) => ({ ...bodyRow(job, this.#retentionMs), request: request ?? null }));
    let isInserted = false;
    try {
      await this.#db.transaction().execute(async (transaction) => {
        await transaction.insertInto('jobs').values(rows).execute();
        if (bodies.length > 0) await transaction.insertInto('job_bodies').values(bodies).execute();
        isInserted = true;
      });
    } catch (error) {
      // Only a commit can succeed and still fail: its response is lost with the connection.
      if (isInserted) this.#doubtful.push(...rows.map(({ id }) => id));
      throw error;
    }
  }

  /** Deletes the rows of refused jobs. Rows that it cannot delete now are retried before the next write. */
  async #removeDoubtful(): Promise<void> {
    const ids = this.#doubtful;
    if (ids.length === 0) return;
    await this.#db.transaction().execute(async (transaction) => {
      await transaction.deleteFrom('jobs').where('id', 'in', ids).where('outcome', 'is', null).execute();
      await transaction.deleteFrom('job_bodies').where('job_id', 'in', ids).execute();
    });
    this.#doubtful = [];
  }
}

function unavailable(cause?: unknown): ApiError {
  return new ApiError('service_unavailable', 'The database cannot accept the job at the moment. Try again later.', {
    reason: 'database',
    retryAfterMs: 2000,
    cause,
  });
}

import type { Database } from '../../shared/database/database.ts';
import { ApiError } from '../../shared/errors.ts';
import { errorFrame } from '../../shared/jobs/append.ts';
import { lostBeforeRun } from '../../shared/jobs/end-errors.ts';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import type { EndJobContext } from '../../shared/jobs/settlement/end-job.ts';
import { errorDetails } from '../../shared/jobs/settlement/error-details.ts';
import type { ShardedQueue } from '../../shared/queue/sharded-queue.ts';
import { accountKeys, jobKeys } from '../../shared/redis/keys.ts';
import { millisecondsOf } from '../../shared/redis/redis-clock.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { finalBatch } from './final-answer.ts';
import { isSpooledAnywhere } from './outbox/spool-reports.ts';
import { addToUsageHours } from './usage/usage-hours.ts';

/** Interval between rounds. */
const roundMs = 10_000;
/** Younger jobs are skipped: their state may not exist yet. */
const minAgeMs = 20_000;
/** Rows read at a time. */
const page = 500;

interface OpenJob {
  readonly id: string;
  readonly account_id: string;
  readonly capability: string;
}

export interface LostJobsOptions extends Pick<EndJobContext, 'redis'> {
  /** The database does not know the shard of a job. */
  readonly queue: (capability: JobIdentity['capability']) => Pick<ShardedQueue, 'has' | 'remove'>;
  readonly db: Database;
  readonly log: Logger;
  /** Called for each job that is ended as lost. */
  readonly onLost?: () => void;
  /** Overrides of the defaults (10 s, 20 s), for tests. */
  readonly roundMs?: number;
  readonly minAgeMs?: number;
}

/**
 * Ends jobs that Redis has lost: unfinished in the database, without a state, and without a record in the outbox. The last
 * takes two rounds: what was in the outbox in the first must be written by the second. (An empty outbox is no usable sign,
 * as that of a busy account never is.) Every api process runs one; ending a job twice is harmless.
 */
export class LostJobs {
  readonly #options: LostJobsOptions;
  readonly #timer: NodeJS.Timeout;
  /** Newest entry of the outbox when a job's state was first missed, by job; '' for an empty outbox. */
  #missed = new Map<string, string>();
  #round: Promise<void> | undefined;

  constructor(options: LostJobsOptions) {
    this.#options = options;
    this.#timer = setInterval(() => {
      this.#round ??= this.sweep()
        .catch((error) => options.log.warn({ err: error }, 'searching for lost jobs failed'))
        .finally(() => {
          this.#round = undefined;
        });
    }, options.roundMs ?? roundMs);
    this.#timer.unref();
  }

  /** Checks all unfinished jobs of the database. */
  async sweep(): Promise<void> {
    // The end of any of them may be in a spool.
    if (await isSpooledAnywhere(this.#options.redis, this.#options.log)) return;
    const before = this.#missed;
    const missed = new Map<string, string>();
    // Jobs have the times of Redis's clock.
    const now = Math.floor(millisecondsOf(await this.#options.redis.time()));
    const oldest = now - (this.#options.minAgeMs ?? minAgeMs);
    for (let after = ''; ; ) {
      const rows = await this.#options.db
        .selectFrom('jobs')
        .select(['id', 'account_id', 'capability'])
        .where('outcome', 'is', null)
        .where('id', '>', after)
        .where('created_at', '<', oldest)
        .orderBy('id')
        .limit(page)
        .execute();
      await Promise.all(rows.map((job) => this.#look(job, before.get(job.id), missed)));
      const last = rows.at(-1);
      if (last === undefined || rows.length < page) break;
      after = last.id;
    }
    this.#missed = missed;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** @param newestBefore newest entry of the outbox in the round before, if that missed the job's state */
  async #look(job: OpenJob, newestBefore: string | undefined, missed: Map<string, string>): Promise<void> {
    const { redis } = this.#options;
    // The state is checked first: it outlives the settlement, so without it no record will follow.
    if ((await redis.exists(jobKeys.state(job.id))) === 1) return;
    const outbox = accountKeys.outbox(job.account_id);
    if (newestBefore === undefined) {
      const [newest] = await redis.xrevrange(outbox, '+', '-', 'COUNT', 1);
      missed.set(job.id, newest?.[0] ?? '');
      return;
    }
    const isWritten = newestBefore === '' || (await redis.xrange(outbox, '-', newestBefore, 'COUNT', 1)).length === 0;
    if (isWritten) await this.#end(job);
    else missed.set(job.id, newestBefore);
  }

  async #end(job: OpenJob): Promise<void> {
    const { db, queue, log } = this.#options;
    const waiting = queue(job.capability as JobIdentity['capability']);
    // A job in its queue without a worker has not started, and without a state it never will.
    const neverBegan = (await waiting.has(job.id)) && (await waiting.remove(job.id));
    const error = neverBegan
      ? lostBeforeRun()
      : new ApiError('outcome_unknown', 'The gateway lost this request. It may or may not have run.');
    await db.transaction().execute(async (transaction) => {
      const ended = await transaction
        .updateTable('jobs')
        .set({ outcome: 'failed', error_code: error.code, error_details: errorDetails(error), ended_at: Date.now() })
        .where('id', '=', job.id)
        .where('outcome', 'is', null)
        .returningAll()
        .execute();
      if (ended.length === 0) return;
      await transaction
        .updateTable('job_bodies')
        .set({ answer: finalBatch([errorFrame(error)], 1) })
        .where('job_id', '=', job.id)
        .execute();
      await addToUsageHours(transaction, ended);
      log.warn({ job: job.id, code: error.code }, 'job was lost; it is ended');
      this.#options.onLost?.();
    });
  }
}

import type { Blobs } from '../../../shared/blobs/blobs.ts';
import type { Config } from '../../../shared/config/config.ts';
import type { Database } from '../../../shared/database/database.ts';
import { jobRetentionKey } from '../../../shared/redis/keys.ts';
import type { RedisClient } from '../../../shared/redis/redis.ts';
import type { Logger } from '../../../shared/runtime/log.ts';
import { firstIdAt } from '../usage/usage-report.ts';
import { exportJobs, type IdRange } from './export-jobs.ts';
import { dropPartition, extendPartitions, hasPartitions, type JobPartition, readPartitions } from './job-partitions.ts';

const dayMs = 86_400_000;
/** Rows deleted by one statement, kept low so that other writers get through. */
const batch = 500;
/** Time for which the others leave a round to the process that began one, in ms: a little less than from one round to the next. */
const roundMs = 500_000;

export interface JobRetentionOptions {
  readonly db: Database;
  readonly redis: RedisClient;
  readonly blobs: Pick<Blobs, 'writeExport'>;
  readonly config: Pick<Config, 'jobRetentionMs' | 'jobExport'>;
  readonly log: Logger;
}

/**
 * Deletes the rows of jobs older than their retention, a day (UTC) at a time, each exported before if that is configured; on
 * Postgres it also makes the partitions of the days to come. Sums of usage stay, and so do unfinished jobs. An interrupted round is
 * repeated by the next one.
 * @param now ms since 1970
 * @throws Error of the database, Redis or the storage of files
 */
export async function retainJobs(options: JobRetentionOptions, now: number = Date.now()): Promise<void> {
  const { db, redis, config } = options;
  if (hasPartitions(db)) await extendPartitions(db, config.jobRetentionMs, now);
  if (config.jobRetentionMs === undefined) return;
  if ((await redis.set(jobRetentionKey, '1', 'PX', roundMs, 'NX')) === null) return;
  const cutoff = firstIdAt(startOfDay(now - config.jobRetentionMs));
  for (const partition of hasPartitions(db) ? await readPartitions(db) : []) {
    if (partition.to <= cutoff) await dropExpired(options, partition);
  }
  // SQLite's, and on Postgres what partitions that are not over yet, or were dropped before, have of expired days.
  await removeDays(options, { from: '', to: cutoff }, (day) => deleteRows(db, day));
}

/** Drops a partition with its days exported, unless a job in it has not ended. */
async function dropExpired(options: JobRetentionOptions, partition: JobPartition): Promise<void> {
  const range = { from: partition.from ?? '', to: partition.to };
  const unfinished = await options.db
    .selectFrom('jobs')
    .select('id')
    .where('id', '>=', range.from)
    .where('id', '<', range.to)
    .where('outcome', 'is', null)
    .limit(1)
    .executeTakeFirst();
  if (unfinished !== undefined) return;
  await removeDays(options, range, async () => 0);
  await dropPartition(options.db, partition);
  options.log.info({ partition: partition.name }, 'a partition of expired jobs was dropped');
}

/** Exports and removes the jobs of a range by the day. */
async function removeDays(
  { db, blobs, config, log }: JobRetentionOptions,
  range: IdRange,
  remove: (day: IdRange) => Promise<number>,
): Promise<void> {
  for (let from = range.from; ; ) {
    const first = await firstEnded(db, { from, to: range.to });
    if (first === undefined) return;
    const start = startOfDay(Number.parseInt(first.slice(0, 12), 16) || 0);
    const end = firstIdAt(start + dayMs);
    const to = end > first && end < range.to ? end : range.to;
    const day = new Date(start).toISOString().slice(0, 10);
    const exported =
      config.jobExport === 'off'
        ? undefined
        : await exportJobs({ db, blobs }, config.jobExport, day, { from: first, to });
    const deleted = await remove({ from: first, to });
    log.info({ day, deleted, ...exported }, 'expired jobs were removed');
    from = to;
  }
}

async function firstEnded(db: Database, { from, to }: IdRange): Promise<string | undefined> {
  const row = await db
    .selectFrom('jobs')
    .select('id')
    .where('id', '>=', from)
    .where('id', '<', to)
    .where('outcome', 'is not', null)
    .orderBy('id')
    .limit(1)
    .executeTakeFirst();
  return row?.id;
}

/** Deletes the ended jobs of a range. Returns their number. */
async function deleteRows(db: Database, { from, to }: IdRange): Promise<number> {
  let deleted = 0;
  for (;;) {
    const { numDeletedRows } = await db
      .deleteFrom('jobs')
      .where('id', 'in', (query) =>
        query
          .selectFrom('jobs')
          .select('id')
          .where('id', '>=', from)
          .where('id', '<', to)
          .where('outcome', 'is not', null)
          .orderBy('id')
          .limit(batch),
      )
      .where('id', '>=', from)
      .where('id', '<', to)
      .executeTakeFirst();
    deleted += Number(numDeletedRows);
    if (numDeletedRows < BigInt(batch)) return deleted;
  }
}

function startOfDay(time: number): number {
  return Math.floor(time / dayMs) * dayMs;
}

import type { Blobs } from '../../../shared/blobs/blobs.ts';
import type { Config } from '../../../shared/config/config.ts';
import type { Database } from '../../../shared/database/database.ts';
import { jobRetentionKey } from '../../../shared/redis/keys.ts';
import type { RedisClient } from '../../../shared/redis/redis.ts';
import type { Logger } from '../../../shared/runtime/log.ts';
import { dayMs } from '../usage/usage-hours.ts';
import { firstIdAt } from '../usage/usage-report.ts';
import { type Export, type ExportedPage, exportJobs, type IdRange } from './export-jobs.ts';
import {
  dropPartition,
  extendPartitions,
  hasPartitions,
  type JobPartition,
  mayChangePartitions,
  readPartitions,
} from './job-partitions.ts';

/** Rows deleted by one statement, kept low so that other writers get through. */
const batch = 500;
/**
 * Time for which the others leave a round to the process that began one, in ms: a little less than from one round to the next.
 * It is renewed while the round lasts, as exports may take hours.
 */
const usualRoundMs = 500_000;

export interface JobRetentionOptions {
  readonly db: Database;
  readonly redis: RedisClient;
  readonly blobs: Pick<Blobs, 'writeExport'>;
  readonly config: Pick<Config, 'jobRetentionMs' | 'jobExport'>;
  readonly log: Logger;
  /** Override of the default (500 s), for tests. */
  readonly roundMs?: number;
}

/**
 * Deletes the rows of jobs older than their retention, a day (UTC) at a time, each exported before if that is configured; on
 * Postgres it also makes the partitions of the days to come. Sums of usage stay, and so do unfinished jobs. An interrupted round is
 * repeated by the next one.
 * @param now ms since 1970
 * @throws Error of the database, Redis or the storage of files
 */
export async function retainJobs(options: JobRetentionOptions, now: number = Date.now()): Promise<void> {
  const { db, redis, config, log, roundMs = usualRoundMs } = options;
  const makesPartitions = hasPartitions(db) && (await mayChangePartitions(db));
  if (makesPartitions) await extendPartitions(db, config.jobRetentionMs, now);
  else if (hasPartitions(db))
    log.warn("the database's user does not own its tables: no partitions are made or dropped");
  if (config.jobRetentionMs === undefined) return;
  if ((await redis.set(jobRetentionKey, '1', 'PX', roundMs, 'NX')) === null) return;
  const renewing = setInterval(() => void redis.pexpire(jobRetentionKey, roundMs).catch(() => undefined), roundMs / 4);
  renewing.unref();
  try {
    const cutoff = firstIdAt(startOfDay(now - config.jobRetentionMs));
    if (makesPartitions) await dropAllExpired(options, cutoff);
    await deleteExpired(options, cutoff);
  } finally {
    clearInterval(renewing);
  }
}

/** Drops the partitions that are over before an id. */
async function dropAllExpired(options: JobRetentionOptions, cutoff: string): Promise<void> {
  for (const partition of await readPartitions(options.db)) {
    if (partition.to <= cutoff) await dropExpired(options, partition);
  }
}

/** Deletes the rows of what ended before an id. */
async function deleteExpired(options: JobRetentionOptions, cutoff: string): Promise<void> {
  const { db, log } = options;
  // SQLite's, and on Postgres what partitions that are not over yet, were dropped before, or may not be, have of expired days.
  for await (const day of daysOf(db, { from: '', to: cutoff })) {
    const exported = await exportDay(options, day);
    const deleted = exported === undefined ? await deleteRows(db, day) : await deletePages(db, exported.pages);
    log.info({ day: day.name, deleted, ...logged(exported) }, 'expired jobs were deleted');
  }
}

/** Drops a partition with its days exported, unless a job in it has not ended, or has come meanwhile. */
async function dropExpired(options: JobRetentionOptions, { name, from = '', to }: JobPartition): Promise<void> {
  const { db, config, log } = options;
  const unfinished = jobsIn(db, { from, to }).where('outcome', 'is', null);
  if ((await unfinished.limit(1).executeTakeFirst()) !== undefined) return;
  const exports: Export[] = [];
  if (config.jobExport !== 'off') {
    for await (const day of daysOf(db, { from, to })) exports.push((await exportDay(options, day)) as Export);
  }
  const pages = config.jobExport === 'off' ? undefined : exports.flatMap(({ pages }) => pages);
  if (await dropPartition(db, { name, from, to }, pages)) {
    log.info({ partition: name, exports: exports.map(logged) }, 'a partition of expired jobs was dropped');
  }
}

function logged(exported: Export | undefined): Partial<Pick<Export, 'file' | 'rows'>> {
  return exported === undefined ? {} : { file: exported.file, rows: exported.rows };
}

/** The ended jobs of one day (UTC): ids from its first one on. */
interface Day extends IdRange {
  /** `YYYY-MM-DD` */
  readonly name: string;
}

/** The days of a range that have ended jobs, oldest first. Each is read once the one before it has been dealt with. */
async function* daysOf(db: Database, range: IdRange): AsyncGenerator<Day> {
  for (let from = range.from; ; ) {
    const first = await endedJobsIn(db, { from, to: range.to }).limit(1).executeTakeFirst();
    if (first === undefined) return;
    const start = startOfDay(Number.parseInt(first.id.slice(0, 12), 16) || 0);
    const end = firstIdAt(start + dayMs);
    const to = end > first.id && end < range.to ? end : range.to;
    yield { name: new Date(start).toISOString().slice(0, 10), from: first.id, to };
    from = to;
  }
}

async function exportDay({ db, blobs, config }: JobRetentionOptions, day: Day): Promise<Export | undefined> {
  return config.jobExport === 'off' ? undefined : await exportJobs({ db, blobs }, config.jobExport, day.name, day);
}

/** Deletes the ended jobs of a range. Returns their number. */
async function deleteRows(db: Database, range: IdRange): Promise<number> {
  let deleted = 0;
  for (;;) {
    const { numDeletedRows } = await db
      .deleteFrom('jobs')
      .where('id', 'in', endedJobsIn(db, range).limit(batch))
      // As a condition of its own, it tells Postgres which partitions to look at.
      .where('id', '>=', range.from)
      .where('id', '<', range.to)
      .executeTakeFirst();
    deleted += Number(numDeletedRows);
    if (numDeletedRows < BigInt(batch)) return deleted;
  }
}

/** Rolls back a deletion of other rows than those that were exported. */
class OtherRows extends Error {}

/**
 * Deletes rows that were exported. A page to which a job was added since, because it ended or its record came late, stays for the
 * next round, which exports it whole. Returns the number deleted.
 */
async function deletePages(db: Database, pages: readonly ExportedPage[]): Promise<number> {
  let deleted = 0;
  for (const { first, last, rows } of pages) {
    const deleting = db.transaction().execute(async (transaction) => {
      const page = transaction.deleteFrom('jobs').where('id', '>=', first).where('id', '<=', last);
      const { numDeletedRows } = await page.where('outcome', 'is not', null).executeTakeFirst();
      if (Number(numDeletedRows) !== rows) throw new OtherRows();
      return rows;
    });
    deleted += await deleting.catch((error) => {
      if (error instanceof OtherRows) return 0;
      throw error;
    });
  }
  return deleted;
}

function jobsIn(db: Database, { from, to }: IdRange) {
  return db.selectFrom('jobs').select('id').where('id', '>=', from).where('id', '<', to);
}

function endedJobsIn(db: Database, range: IdRange) {
  return jobsIn(db, range).where('outcome', 'is not', null).orderBy('id');
}

function startOfDay(time: number): number {
  return Math.floor(time / dayMs) * dayMs;
}

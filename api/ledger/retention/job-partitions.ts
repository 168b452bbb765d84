import { type Kysely, PostgresAdapter, sql } from 'kysely';
import type { Database } from '../../../shared/database/database.ts';
import type { Tables } from '../../../shared/database/tables.ts';
import { codeOf } from '../../../shared/runtime/error-code.ts';
import { dayMs } from '../usage/usage-hours.ts';
import { firstIdAt } from '../usage/usage-report.ts';
import { type ExportedPage, rowsOf } from './export-jobs.ts';

/** Partitions are made this long before their time, in ms: no job waits for one, and a gateway may be stopped for days. */
const aheadMs = 7 * dayMs;
/** With a longer retention (ms) partitions are months: each statement that names no ids plans for every partition. */
const maxDailyMs = 100 * dayMs;
/** How long a change of partitions waits for the table, in ms. Whoever comes behind waits as long, so it gives way and is tried again. */
const lockMs = 100;
const maxTries = 50;
/** SQLSTATE of a change that gave way, of one that crossed another, and of rows that came in between. */
const passing: ReadonlySet<unknown> = new Set(['55P03', '40P01', '23514']);
/** Rows moved into a new partition by one statement: each has a timeout. */
const movedRows = 10_000;
/** Exported pages whose rows are counted by one statement: each has a timeout. */
const countedPages = 200;
/** The advisory lock of whoever changes partitions; any number unused by other programs on this database. */
const lock = 7_355_608_018;

/** A partition of `jobs`: the ids from `from`, inclusive, to `to`, exclusive; the first one has no start. */
export interface JobPartition {
  readonly name: string;
  readonly from: string | undefined;
  readonly to: string;
}

/** Whether the database has partitions: that of Postgres. */
export function hasPartitions(db: Database): boolean {
  return db.getExecutor().adapter instanceof PostgresAdapter;
}

/** Whether this user of the database may make and drop partitions: one who owns the table. */
export async function mayChangePartitions(db: Database): Promise<boolean> {
  const { rows } = await sql<{ may: boolean }>`
    select pg_has_role(relowner, 'usage') and has_schema_privilege(relnamespace, 'create') as may
    from pg_class where oid = 'jobs'::regclass`.execute(db);
  return rows[0]?.may ?? false;
}

/** Lists the partitions of `jobs` in order, without the last one, which takes the rows for which there is none. */
export async function readPartitions(db: Kysely<Tables>): Promise<JobPartition[]> {
  const { rows } = await sql<{ name: string; bounds: string }>`
    select relname as name, pg_get_expr(relpartbound, oid) as bounds
    from pg_inherits join pg_class on oid = inhrelid where inhparent = 'jobs'::regclass`.execute(db);
  return rows
    .flatMap(({ name, bounds }) => {
      const [, from, to] = /^FOR VALUES FROM \((?:MINVALUE|'([^']+)')\) TO \('([^']+)'\)$/.exec(bounds) ?? [];
      return to === undefined ? [] : { name, from, to };
    })
    .sort((one, other) => (one.to < other.to ? -1 : 1));
}

/**
 * Makes the partitions that will be needed soon: days if rows are kept for 100 days at most, else months.
 * @param retentionMs how long rows are kept; undefined: for good
 * @param now ms since 1970
 * @returns the names of those made here
 * @throws PostgresError when the table stays in use by others
 */
export async function extendPartitions(
  db: Database,
  retentionMs: number | undefined,
  now: number = Date.now(),
): Promise<string[]> {
  const made: string[] = [];
  for (;;) {
    const next = nextPartition(await readPartitions(db), retentionMs, now);
    if (next === undefined) return made;
    const isMade = await untilUnlocked(db, (transaction) => makePartition(transaction, next));
    // Another process makes it.
    if (!isMade) return made;
    made.push(next.name);
  }
}

/** The partition after the newest one; undefined if that reaches far enough. */
function nextPartition(
  partitions: readonly JobPartition[],
  retentionMs: number | undefined,
  now: number,
): (JobPartition & { readonly from: string }) | undefined {
  const from = partitions.at(-1)?.to;
  const start = Number.parseInt(from?.slice(0, 12) ?? '', 16);
  if (from === undefined || Number.isNaN(start) || start > now + aheadMs) return undefined;
  // While no gateway ran no rows came: one partition spans the pause.
  const date = new Date(Math.max(start, now - dayMs));
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  const isDaily = retentionMs !== undefined && retentionMs <= maxDailyMs;
  const end = isDaily ? Date.UTC(year, month, date.getUTCDate() + 1) : Date.UTC(year, month + 1);
  return {
    name: `jobs_from_${new Date(start).toISOString().slice(0, 10).replaceAll('-', '')}`,
    from,
    to: firstIdAt(end),
  };
}

/**
 * Attaches a table as partition, with the rows for it that are in the last partition. Attaching locks that one alone, which is
 * usually empty; making it in place would lock all of `jobs`. Returns whether it was made here.
 */
async function makePartition(transaction: Kysely<Tables>, { name, from, to }: JobPartition): Promise<boolean> {
  if (!(await hasLock(transaction)) || (await isPartition(transaction, name))) return false;
  const table = sql.table(name);
  await sql`create table ${table} (like jobs including all)
    with (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 100000)`.execute(transaction);
  // They are many if nobody has made partitions for weeks.
  let next: string | null | undefined = from;
  while (next != null) {
    const moved: { rows: { last: string | null }[] } = await sql<{
      last: string | null;
    }>`with chosen as (select id from jobs_rest where id >= ${next} and id < ${to}
        order by id limit ${sql.lit(movedRows)}),
      moved as (delete from jobs_rest where id in (select id from chosen) returning *),
      added as (insert into ${table} select * from moved returning id)
      select max(id) as last from added`.execute(transaction);
    next = moved.rows[0]?.last;
  }
  const [first, end] = [sql.lit(from), sql.lit(to)];
  await sql`alter table jobs attach partition ${table} for values from (${first}) to (${end})`.execute(transaction);
  return true;
}

/**
 * Drops a partition. Statements on `jobs` wait for the change of the catalogue alone: the files are removed after it. Returns
 * whether it was dropped here.
 * @param exported what was exported of it: one with other rows, which came meanwhile, is not dropped. Undefined: nothing had to be.
 * @throws PostgresError when the table stays in use by others
 */
export async function dropPartition(
  db: Database,
  partition: JobPartition,
  exported?: readonly ExportedPage[],
): Promise<boolean> {
  const table = sql.table(partition.name);
  return await untilUnlocked(db, async (transaction) => {
    if (!(await hasLock(transaction)) || !(await isPartition(transaction, partition.name))) return false;
    if (exported !== undefined) {
      // Readers go on. Only who writes a job of so long ago waits.
      await sql`lock table ${table} in share mode`.execute(transaction);
      if ((await countRows(transaction, partition, exported)) !== rowsOf(exported)) return false;
    }
    await sql`drop table ${table}`.execute(transaction);
    return true;
  });
}

/** Counts all rows of a partition. @param pages where its ids may be parted */
async function countRows(
  transaction: Kysely<Tables>,
  { name, to }: JobPartition,
  pages: readonly ExportedPage[],
): Promise<number> {
  const bounds = pages.filter((_, index) => index > 0 && index % countedPages === 0).map(({ first }) => first);
  let rows = 0;
  for (const [index, end] of [...bounds, to].entries()) {
    const begin = bounds[index - 1] ?? '';
    const counted = await sql<{ rows: number }>`
      select count(*) as rows from ${sql.table(name)} where id >= ${begin} and id < ${end}`.execute(transaction);
    rows += counted.rows[0]?.rows ?? 0;
  }
  return rows;
}

async function isPartition(transaction: Kysely<Tables>, name: string): Promise<boolean> {
  return (await readPartitions(transaction)).some((partition) => partition.name === name);
}

async function hasLock(transaction: Kysely<Tables>): Promise<boolean> {
  const query = sql<{ got: boolean }>`select pg_try_advisory_xact_lock(${sql.lit(lock)}) as got`;
  return (await query.execute(transaction)).rows[0]?.got ?? false;
}

/** Changes tables in a transaction, which gives way to their users and is tried again. */
async function untilUnlocked<Result>(
  db: Database,
  change: (transaction: Kysely<Tables>) => Promise<Result>,
): Promise<Result> {
  for (let tries = 1; ; tries++) {
    try {
      return await db.transaction().execute(async (transaction) => {
        await sql`set local lock_timeout = ${sql.lit(lockMs)}`.execute(transaction);
        return await change(transaction);
      });
    } catch (error) {
      if (!passing.has(codeOf(error)) || tries >= maxTries) throw error;
      await new Promise((resolve) => setTimeout(resolve, lockMs * (0.5 + Math.random())));
    }
  }
}

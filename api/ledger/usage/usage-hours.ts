import { type RawBuilder, type Selectable, sql } from 'kysely';
import type { Database } from '../../../shared/database/database.ts';
import { maxSum, saturatedAddition } from '../../../shared/database/saturated-sum.ts';
import { selectRows, storableText } from '../../../shared/database/select-rows.ts';
import type { JobsTable, Tables, UsageDaysTable, UsageHoursTable } from '../../../shared/database/tables.ts';

/** Granularities of usage sums, in ms. */
export const hourMs = 3_600_000;
export const dayMs = 24 * hourMs;

/** Columns that group the sums. */
const hourColumns = [
  ...(['account_id', 'hour_start', 'api_key_id', 'model', 'endpoint', 'capability', 'vendor'] as const),
] satisfies (keyof UsageHoursTable)[];

/** Columns that are summed. */
export const sumColumns = [
  ...(['requests', 'failed', 'cancelled', 'input_tokens', 'output_tokens', 'cost', 'milliseconds'] as const),
  ...(['first_milliseconds', 'first_count', 'cached_tokens', 'saved', 'cache_hits'] as const),
] satisfies (keyof UsageHoursTable & keyof UsageDaysTable)[];

/** Sums of jobs; `cost` and `saved` in nano-dollars, times in ms. */
export type UsageSums = Pick<UsageHoursTable, (typeof sumColumns)[number]>;

/** Columns of a job's row that are counted. */
export type CountedJob = Pick<
  Selectable<JobsTable>,
  | Exclude<(typeof hourColumns)[number], 'hour_start'>
  | ('created_at' | 'ended_at' | 'first_at' | 'outcome' | 'input_tokens' | 'output_tokens' | 'cached_tokens')
  | ('cost' | 'saved')
>;

/** Columns by which a job is grouped. */
export type GroupedJob = Pick<CountedJob, Exclude<(typeof hourColumns)[number], 'hour_start'> | 'created_at'>;

/**
 * Adds ended jobs to the hourly and daily sums of their creation time, of their account and of all accounts. Runs in the
 * transaction that sets their end, as its last statements (all accounts share the current hour's sums), and only for jobs
 * without an end before, so each job counts once.
 */
export async function addToUsageHours(transaction: Database, jobs: readonly CountedJob[]): Promise<void> {
  if (jobs.length > 0) await addHours(transaction, hoursOf(jobs));
}

/** Hourly sums of accounts, by their group. */
export type UsageHours = Map<string, UsageHoursTable>;

/**
 * Adds hourly sums of accounts to those in the database, to the daily ones, and to those of all accounts. Runs in a transaction,
 * as its last statements.
 */
export async function addHours(transaction: Database, hours: UsageHours): Promise<void> {
  const [days, all] = [new Map<string, UsageDaysTable>(), new Map<string, UsageHoursTable>()];
  // Per sum, not per job: the jobs of a batch form few groups.
  for (const hour of hours.values()) {
    addSums(dayOf(days, hour), hour);
    addSums(hourOfAll(all, hour), hour);
  }
  await add(transaction, usageDays, inOrder(days));
  // The sums of all accounts, the most contended, come last.
  await add(transaction, usageHours, [...inOrder(hours), ...inOrder(all)]);
}

/** All transactions lock rows in the same order, so that they cannot deadlock. */
function inOrder<Row>(rows: ReadonlyMap<string, Row>): Row[] {
  return [...rows].sort(([one], [other]) => (one < other ? 1 : -1)).map(([, row]) => row);
}

/** A table of sums with the constant parts of its upsert, which are built once per SQL dialect. */
function sumsTable<Table extends 'usage_days' | 'usage_hours'>(
  name: Table,
  groupColumns: readonly (keyof Tables[Table] & string)[],
) {
  const columns = [...groupColumns, ...(sumColumns as readonly (keyof Tables[Table] & string)[])];
  const added = new WeakMap<object, RawBuilder<unknown>>();
  return {
    name,
    columns,
    insert: sql.raw(`insert into ${name} (${columns.join(', ')})`),
    onConflict(db: Database): RawBuilder<unknown> {
      const { adapter } = db.getExecutor();
      const known = added.get(adapter);
      if (known !== undefined) return known;
      const updates = sumColumns.map(
        (column) => `${column} = ${saturatedAddition(db, `${name}.${column}`, `excluded.${column}`)}`,
      );
      const made = sql.raw(`on conflict (${groupColumns.join(', ')}) do update set ${updates.join(', ')}`);
      added.set(adapter, made);
      return made;
    },
  };
}

const usageDays = sumsTable('usage_days', ['day_start', 'account_id', 'api_key_id']);
const usageHours = sumsTable('usage_hours', [...hourColumns]);

async function add<Table extends 'usage_days' | 'usage_hours'>(
  transaction: Database,
  { name, columns, insert, onConflict }: ReturnType<typeof sumsTable<Table>>,
  rows: readonly object[],
): Promise<void> {
  const selected = selectRows(transaction, name, columns, rows);
  await sql`${insert} ${selected} ${onConflict(transaction)}`.execute(transaction);
}

/** Sums jobs by hour and group of their account. */
function hoursOf(jobs: readonly CountedJob[]): UsageHours {
  const hours: UsageHours = new Map();
  let last: { readonly job: CountedJob; readonly hour: UsageHoursTable } | undefined;
  for (const job of jobs) {
    // Consecutive jobs often share a group, which saves the look-up.
    if (last === undefined || !isAlike(last.job, job)) last = { job, hour: hourOf(hours, job) };
    addJob(last.hour, job);
  }
  return hours;
}

function isAlike(one: CountedJob, other: CountedJob): boolean {
  return (
    one.api_key_id === other.api_key_id &&
    one.model === other.model &&
    one.endpoint === other.endpoint &&
    one.vendor === other.vendor &&
    one.capability === other.capability &&
    one.account_id === other.account_id &&
    hourStart(one) === hourStart(other)
  );
}

function hourStart({ created_at: createdAt }: Pick<CountedJob, 'created_at'>): number {
  return createdAt - (createdAt % hourMs);
}

/** The row of a job's group, which is added with zero sums if missing. */
export function hourOf(hours: UsageHours, job: GroupedJob): UsageHoursTable {
  const { account_id, api_key_id, endpoint, capability, vendor } = job;
  // As stored: names that differ only in unstorable characters are one group, which a statement may contain only once.
  const model = storableText(job.model);
  const group = { account_id, hour_start: hourStart(job), api_key_id, model, endpoint, capability, vendor };
  return rowOf(hours, `${account_id}\n${group.hour_start}\n${api_key_id}\n${keyOfAll(group)}`, group);
}

function hourOfAll(all: Map<string, UsageHoursTable>, hour: UsageHoursTable): UsageHoursTable {
  const group = { ...hour, account_id: '', api_key_id: '' };
  return rowOf(all, `${hour.hour_start}\n${keyOfAll(hour)}`, group);
}

function dayOf(days: Map<string, UsageDaysTable>, hour: UsageHoursTable): UsageDaysTable {
  const { account_id, api_key_id, hour_start } = hour;
  const group = { day_start: hour_start - (hour_start % dayMs), account_id, api_key_id };
  return rowOf(days, `${group.day_start}\n${account_id}\n${api_key_id}`, group);
}

/** Only the model's name, which comes last, can contain a newline. JSON would cost more than all the rest. */
function keyOfAll({ endpoint, capability, vendor, model }: Omit<UsageHoursTable, keyof UsageSums>): string {
  return `${endpoint}\n${capability}\n${vendor}\n${model}`;
}

/** Returns the row of a group, which is added with zero sums if missing. */
function rowOf<Group extends object>(
  rows: Map<string, Group & UsageSums>,
  key: string,
  group: Group,
): Group & UsageSums {
  const known = rows.get(key);
  if (known !== undefined) return known;
  const row = { ...group, ...noUsage };
  rows.set(key, row);
  return row;
}

/** The sums of no jobs. */
export const noUsage: Readonly<UsageSums> = {
  ...{ requests: 0, failed: 0, cancelled: 0, input_tokens: 0, output_tokens: 0, cost: 0, milliseconds: 0 },
  ...{ first_milliseconds: 0, first_count: 0, cached_tokens: 0, saved: 0, cache_hits: 0 },
};

/** Adds `more` to `sums`, each capped at `maxSum`. */
export function addSums(sums: UsageSums, more: UsageSums): void {
  for (const column of sumColumns) addTo(sums, column, more[column]);
}

function addTo(sums: UsageSums, column: keyof UsageSums, amount: number): void {
  sums[column] = Math.min(maxSum, sums[column] + amount);
}

/** Adds one job. */
function addJob(sums: UsageSums, job: CountedJob): void {
  const { created_at: createdAt, ended_at: endedAt, first_at: firstAt } = job;
  sums.requests += 1;
  if (job.outcome === 'failed') sums.failed += 1;
  if (job.outcome === 'cancelled') sums.cancelled += 1;
  addTo(sums, 'input_tokens', job.input_tokens ?? 0);
  addTo(sums, 'output_tokens', job.output_tokens ?? 0);
  addTo(sums, 'cached_tokens', job.cached_tokens ?? 0);
  addTo(sums, 'cost', job.cost ?? 0);
  addTo(sums, 'saved', job.saved ?? 0);
  // The clocks of two processes may differ.
  addTo(sums, 'milliseconds', Math.max(0, (endedAt ?? createdAt) - createdAt));
  if (firstAt === null) return;
  addTo(sums, 'first_milliseconds', Math.max(0, firstAt - createdAt));
  sums.first_count += 1;
}

import { type Insertable, type Selectable, sql } from 'kysely';
import type { Database } from '../../shared/database/database.ts';
import { selectRows, storableText } from '../../shared/database/select-rows.ts';
import type { JobsTable, UsageHoursTable } from '../../shared/database/tables.ts';

/** The grain of usage sums, in ms. */
export const hourMs = 3_600_000;

/** What a job counts by. */
const groupColumns = [
  ...(['account_id', 'hour_start', 'api_key_id', 'model', 'endpoint', 'capability', 'vendor'] as const),
] satisfies (keyof UsageHoursTable)[];

const sumColumns = [
  ...(['requests', 'failed', 'cancelled', 'input_tokens', 'output_tokens', 'cost', 'milliseconds'] as const),
  ...(['first_milliseconds', 'first_count'] as const),
] satisfies (keyof UsageHoursTable)[];

type UsageHour = Insertable<UsageHoursTable>;

/** The columns of a job's row that are counted. */
export type CountedJob = Pick<
  Selectable<JobsTable>,
  | Exclude<(typeof groupColumns)[number], 'hour_start'>
  | ('created_at' | 'ended_at' | 'first_at' | 'outcome' | 'input_tokens' | 'output_tokens' | 'cost')
>;

/**
 * Adds ended jobs to the sums of the hours in which they were made: to their account's, and to those of all. In the transaction that gives them their end, as its
 * last statement (the sums of the current hour are everybody's), and for exactly those that had none before: so each job
 * counts once.
 */
export async function addToUsageHours(transaction: Database, jobs: readonly CountedJob[]): Promise<void> {
  if (jobs.length === 0) return;
  const hours = new Map<string, UsageHour>();
  for (const job of jobs) count(hours, usageOf(job));
  // Of the sums, not of each job: most jobs of a batch are of few groups.
  for (const hour of [...hours.values()]) count(hours, { ...hour, account_id: '', api_key_id: '' });
  // Everybody locks them in one order: two that lock the same rows wait for each other, but never in a ring. The sums of
  // all, which most wait for, come last.
  const rows = [...hours].sort(([one], [other]) => (one < other ? 1 : -1)).map(([, hour]) => hour);
  const columns = [...groupColumns, ...sumColumns];
  const ref = (column: string) => sql.ref(column);
  const updates = sumColumns.map(
    (column) => sql`${ref(column)} = ${ref(`usage_hours.${column}`)} + ${ref(`excluded.${column}`)}`,
  );
  await sql`
    insert into usage_hours (${sql.join(columns.map(ref))}) ${selectRows(transaction, 'usage_hours', columns, rows)}
    on conflict (${sql.join(groupColumns.map(ref))}) do update set ${sql.join(updates)}`.execute(transaction);
}

function count(hours: Map<string, UsageHour>, hour: UsageHour): void {
  // Only the model's name, which comes last, can have a line's end in it. As JSON it would cost each job more than the rest.
  const { account_id, api_key_id, hour_start, model, endpoint, capability, vendor } = hour;
  const group = `${account_id}\n${hour_start}\n${api_key_id}\n${endpoint}\n${capability}\n${vendor}\n${model}`;
  const sums = hours.get(group);
  if (sums === undefined) hours.set(group, hour);
  else for (const column of sumColumns) sums[column] += hour[column];
}

/** What one job adds. */
function usageOf(job: CountedJob): UsageHour {
  const { account_id, api_key_id, endpoint, capability, vendor, created_at: createdAt } = job;
  return {
    ...{ account_id, hour_start: createdAt - (createdAt % hourMs), api_key_id, endpoint, capability, vendor },
    // As it is stored: names that differ only in what no database takes are one group, and one statement has it once.
    model: storableText(job.model),
    requests: 1,
    failed: job.outcome === 'failed' ? 1 : 0,
    cancelled: job.outcome === 'cancelled' ? 1 : 0,
    input_tokens: job.input_tokens ?? 0,
    output_tokens: job.output_tokens ?? 0,
    cost: job.cost ?? 0,
    // Two processes' clocks may differ.
    milliseconds: Math.max(0, (job.ended_at ?? createdAt) - createdAt),
    first_milliseconds: job.first_at === null ? 0 : Math.max(0, job.first_at - createdAt),
    first_count: job.first_at === null ? 0 : 1,
  };
}

import { type ExpressionBuilder, type RawBuilder, sql } from 'kysely';
import type { Database } from '../../shared/database/database.ts';
import type { Tables, UsageHoursTable } from '../../shared/database/tables.ts';
import { type JobTag, tagCondition } from './job-tags.ts';
import { hourMs } from './usage-hours.ts';

const dayMs = 24 * hourMs;
/** The groups that one report names: those that cost most. */
const mostGroups = 1000;
/** A job's id tells when its request came, and `created_at` when it was read: an upload may take its time. */
const uploadMs = hourMs;

/** What usage is summed by. */
export const usageGroups = [
  ...(['hour', 'day', 'model', 'key', 'endpoint', 'vendor', 'capability', 'account'] as const),
] as const;
export type UsageGroup = (typeof usageGroups)[number];

/** Which usage is asked for. What is undefined leaves nothing out. */
export interface UsageQuestion {
  readonly account: string | undefined;
  /** Whole hours, in ms since 1970; `to` is the end of the last one. */
  readonly from: number;
  readonly to: number;
  readonly groupBy: UsageGroup;
  /** What a day's beginning is before that of UTC, in ms: 3,600,000 for a day of Central Europe's winter. */
  readonly timeZoneMs: number;
  readonly model?: string | undefined;
  readonly key?: string | undefined;
  readonly endpoint?: string | undefined;
  readonly capability?: string | undefined;
  readonly vendor?: string | undefined;
  /** Only jobs whose requests had this in their `metadata`. */
  readonly tag?: JobTag | undefined;
}

/** Sums of jobs; `cost` in nano-dollars, times in ms. */
export type UsageSums = Pick<
  UsageHoursTable,
  | ('requests' | 'failed' | 'cancelled' | 'input_tokens' | 'output_tokens' | 'cost')
  | ('milliseconds' | 'first_milliseconds' | 'first_count')
>;

/** Sums of one group: a time in ms (the beginning of an hour, or of a day in the time zone), or an id or a name. */
export interface UsageRow extends UsageSums {
  readonly group: number | string;
}

const sumColumns = [
  ...(['requests', 'failed', 'cancelled', 'input_tokens', 'output_tokens', 'cost'] as const),
  ...(['milliseconds', 'first_milliseconds', 'first_count'] as const),
] satisfies (keyof UsageSums)[];

const groupColumns = {
  hour: 'hour_start',
  day: 'hour_start',
  model: 'model',
  key: 'api_key_id',
  endpoint: 'endpoint',
  vendor: 'vendor',
  capability: 'capability',
  account: 'account_id',
} as const satisfies Record<UsageGroup, keyof UsageHoursTable>;

/**
 * What was used, of the jobs that have ended, by the time at which they were made. Times come in order, other groups by
 * what they cost, a thousand at most; the total is of all.
 *
 * It reads the sums of hours: an account's, or those of all; but by accounts or keys it reads every account's, which takes
 * a second where they have a million. A question for a tag cannot: it reads the account's jobs of the whole span one by one, about a
 * second for each million of them, which is why its span is to be short.
 */
export async function readUsage(
  db: Database,
  question: UsageQuestion,
): Promise<{ readonly rows: UsageRow[]; readonly total: UsageSums }> {
  const isTime = question.groupBy === 'hour' || question.groupBy === 'day';
  const rows = await usageByGroup(db, question).execute();
  if (isTime || rows.length <= mostGroups) return { rows, total: totalOf(rows) };
  const whole = await usageByGroup(db, question, sql.lit('')).execute();
  return { rows: rows.slice(0, mostGroups), total: totalOf(whole) };
}

/** The statement that answers it, one group more than a report names. @param group what to sum by instead */
export function usageByGroup(db: Database, question: UsageQuestion, group = groupOf(question)) {
  const { groupBy } = question;
  const isTime = groupBy === 'hour' || groupBy === 'day';
  const sums = sql.join(sumColumns.map((column) => sql`sum(${sql.ref(column)}) as ${sql.ref(column)}`));
  const source = question.tag === undefined ? hoursOf(db, question) : hoursOfTag(db, question, question.tag);
  const order = isTime ? sql`1` : sql`sum(cost) desc, sum(requests) desc, 1`;
  const limit = isTime ? sql`` : sql`limit ${sql.lit(mostGroups + 1)}`;
  const statement = sql<UsageRow>`
    select ${group} as "group", ${sums} from (${source}) as hours group by 1 order by ${order} ${limit}`;
  return { execute: async (): Promise<UsageRow[]> => (await statement.execute(db)).rows };
}

function groupOf({ groupBy, timeZoneMs }: UsageQuestion): RawBuilder<unknown> {
  const column = sql.ref(groupColumns[groupBy]);
  if (groupBy !== 'day') return column;
  const [zone, day] = [sql.lit(timeZoneMs), sql.lit(dayMs)];
  return sql`(${column} + ${zone}) / ${day} * ${day} - ${zone}`;
}

function hoursOf(db: Database, question: UsageQuestion) {
  return db
    .selectFrom('usage_hours')
    .selectAll()
    .where('hour_start', '>=', question.from)
    .where('hour_start', '<', question.to)
    .where((expression) => {
      if (question.account !== undefined) return expression.and(conditionsOf(question, expression));
      const { groupBy, key } = question;
      const isByOwner = groupBy === 'account' || groupBy === 'key' || key !== undefined;
      // The rows of all are those of no account.
      const owner = isByOwner ? expression('account_id', '<>', '') : expression('account_id', '=', '');
      return expression.and([...conditionsOf(question, expression), owner]);
    });
}

/** Of each job with the tag what it adds to its hour. */
function hoursOfTag(db: Database, question: UsageQuestion, tag: NonNullable<UsageQuestion['tag']>) {
  const { from, to } = question;
  const one = (condition: RawBuilder<unknown>) => sql<number>`case when ${condition} then 1 else 0 end`;
  const since = (column: 'ended_at' | 'first_at') =>
    sql<number>`case when ${sql.ref(column)} > created_at then ${sql.ref(column)} - created_at else 0 end`;
  return db
    .selectFrom('jobs')
    .select(['account_id', 'api_key_id', 'model', 'endpoint', 'capability', 'vendor', 'input_tokens', 'output_tokens'])
    .select([sql<number>`created_at - created_at % ${sql.lit(hourMs)}`.as('hour_start'), sql<number>`1`.as('requests')])
    .select([one(sql`outcome = 'failed'`).as('failed'), one(sql`outcome = 'cancelled'`).as('cancelled')])
    .select([since('ended_at').as('milliseconds'), since('first_at').as('first_milliseconds')])
    .select([sql<number>`coalesce(cost, 0)`.as('cost'), one(sql`first_at is not null`).as('first_count')])
    .where('id', '>=', firstIdAt(from - uploadMs))
    .where('id', '<', firstIdAt(to))
    .where('created_at', '>=', from)
    .where('created_at', '<', to)
    .where('outcome', 'is not', null)
    .where((expression) => expression.and([...conditionsOf(question, expression), tagCondition(tag)]));
}

function conditionsOf(
  { account, model, key, endpoint, capability, vendor }: UsageQuestion,
  expression: ExpressionBuilder<Tables, 'usage_hours'> | ExpressionBuilder<Tables, 'jobs'>,
) {
  const wanted = { account_id: account, model, api_key_id: key, endpoint, capability, vendor };
  const equals = expression as ExpressionBuilder<Tables, 'usage_hours'>;
  return Object.entries(wanted).flatMap(([column, value]) =>
    value === undefined ? [] : [equals(column as keyof typeof wanted, '=', value)],
  );
}

/** The least id that a job of a time (ms since 1970) can have. */
export function firstIdAt(time: number): string {
  return Math.max(0, time).toString(16).padStart(12, '0');
}

function totalOf(rows: readonly UsageSums[]): UsageSums {
  const total = Object.fromEntries(sumColumns.map((column) => [column, 0])) as unknown as UsageSums;
  for (const row of rows) for (const column of sumColumns) total[column] += row[column] ?? 0;
  return total;
}

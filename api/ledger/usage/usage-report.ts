import { type ExpressionBuilder, type RawBuilder, sql } from 'kysely';
import type { Database } from '../../../shared/database/database.ts';
import { saturatedSum } from '../../../shared/database/saturated-sum.ts';
import type { Tables, UsageHoursTable } from '../../../shared/database/tables.ts';
import { type JobTag, tagCondition } from '../job-tags.ts';
import { addSums, dayMs, hourMs, noUsage, sumColumns, type UsageSums } from './usage-hours.ts';

/** Maximum number of groups in a report; the most expensive ones. */
const maxGroups = 1000;
/** A job's id has the arrival time of its request, `created_at` the time it was read: an upload may take long in between. */
const uploadMs = hourMs;

/** Dimensions by which usage is summed. */
export const usageGroups = [
  ...(['hour', 'day', 'model', 'key', 'endpoint', 'vendor', 'capability', 'account'] as const),
] as const;
export type UsageGroup = (typeof usageGroups)[number];

/** Query for usage. Undefined fields match all. */
export interface UsageQuestion {
  readonly account: string | undefined;
  /** Whole hours, in ms since 1970; `to` is the end of the last one. */
  readonly from: number;
  readonly to: number;
  readonly groupBy: UsageGroup;
  /** Offset of the time zone from UTC, in ms: 3,600,000 for Central Europe in winter. */
  readonly timeZoneMs: number;
  readonly model?: string | undefined;
  readonly key?: string | undefined;
  readonly endpoint?: string | undefined;
  readonly capability?: string | undefined;
  readonly vendor?: string | undefined;
  /** Only jobs with this pair in the `metadata` of their requests. */
  readonly tag?: JobTag | undefined;
}

/** Sums of one group: a time in ms (the start of an hour, or of a day in the time zone), an id or a name. */
export interface UsageRow extends UsageSums {
  readonly group: number | string;
}

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
 * Reports the usage of ended jobs by their creation time. Times are in order, other groups by cost, at most a thousand; the
 * total covers all groups.
 *
 * Reads the hourly sums of an account or of all. By account or key it reads daily sums, and hourly ones at both ends of the
 * span. With further filters it reads every account's hours: half a second per million. A tag reads the jobs of the span one
 * by one, about a second per million, so its span should be short.
 * @param most maximum number of groups, if not a thousand
 * @returns `hasMore`: the cheapest groups are omitted
 */
export async function readUsage(
  db: Database,
  question: UsageQuestion,
  most: number = maxGroups,
): Promise<{ readonly rows: UsageRow[]; readonly total: UsageSums; readonly hasMore: boolean }> {
  const source = question.tag === undefined ? await sumsOf(db, question) : jobsOfTag(db, question, question.tag);
  const summed = summedOn(db);
  const groups = sql`select ${groupOf(question)} as "group", ${summed} from (${source}) as sums group by 1`;
  if (question.groupBy === 'hour' || question.groupBy === 'day') {
    const { rows } = await sql<UsageRow>`${groups} order by 1`.execute(db);
    return { rows, total: totalOf(rows), hasMore: false };
  }
  const largest = sql`select * from usage_groups order by cost desc, requests desc, 1 limit ${sql.lit(most + 1)}`;
  // Covers all groups, including omitted ones, and reuses the rows read.
  const all = sql`select null, ${summed} from usage_groups`;
  const { rows } = await sql<UsageRow | TotalRow>`
    with usage_groups as (${groups}) select * from (${largest}) as largest union all ${all}`.execute(db);
  const read = rows.filter(isOfGroup);
  const total = totalOf(rows.filter((row) => !isOfGroup(row)));
  return { rows: read.slice(0, most), total, hasMore: read.length > most };
}

/** Sums of one model in one hour or day. */
export interface ModelUsageRow extends UsageSums {
  /** Start of the hour or day, in ms since 1970. */
  readonly group: number;
  readonly model: string;
}

/** Usage of an account by hour or day and then by model; at most `limit` rows. */
export async function readUsageByModel(
  db: Database,
  question: UsageQuestion & { readonly account: string; readonly groupBy: 'hour' | 'day' },
  limit: number,
): Promise<ModelUsageRow[]> {
  const { rows } = await sql<ModelUsageRow>`
    select ${groupOf(question)} as "group", model, ${summedOn(db)} from (${hoursOf(db, question)}) as sums
    group by 1, 2 order by 1, 2 limit ${sql.lit(limit)}`.execute(db);
  return rows;
}

type TotalRow = UsageSums & { readonly group: null };

function isOfGroup(row: UsageRow | TotalRow): row is UsageRow {
  return row.group !== null;
}

function summedOn(db: Database): RawBuilder<unknown> {
  return sql.join(sumColumns.map((column) => saturatedSum(db, column).as(column)));
}

function groupOf({ groupBy, timeZoneMs }: UsageQuestion): RawBuilder<unknown> {
  const column = sql.ref(groupColumns[groupBy]);
  if (groupBy !== 'day') return column;
  const [zone, day] = [sql.lit(timeZoneMs), sql.lit(dayMs)];
  return sql`(${column} + ${zone}) / ${day} * ${day} - ${zone}`;
}

/** Selects the rows to sum, with the coarsest granularity that suffices. */
async function sumsOf(db: Database, question: UsageQuestion) {
  const { account, key, groupBy } = question;
  const isByOwner = groupBy === 'account' || groupBy === 'key';
  if (account !== undefined) return hoursOf(db, question);
  if (isByOwner && dayFilters.every((name) => question[name] === undefined)) return daysOf(db, question);
  // The primary key starts with the account, so a key's hours are found through its accounts.
  if (key !== undefined) return hoursOf(db, question).where('account_id', 'in', await readOwners(db, question));
  // The sums of all accounts have an empty account.
  return hoursOf(db, question).where('account_id', isByOwner ? '<>' : '=', '');
}

/** Columns that daily sums lack. */
const dayFilters = ['model', 'endpoint', 'capability', 'vendor'] as const;

/** @param span defaults to the question's */
function hoursOf(db: Database, question: UsageQuestion, { from, to }: Pick<UsageQuestion, 'from' | 'to'> = question) {
  return db
    .selectFrom('usage_hours')
    .selectAll()
    .where('hour_start', '>=', from)
    .where('hour_start', '<', to)
    .where((expression) => expression.and(conditionsOf(question, expression)));
}

/** Daily sums of the whole days in a span, by account and key, and hourly sums before and after them. */
function daysOf(db: Database, question: UsageQuestion) {
  const { from, to } = question;
  const firstDay = Math.ceil(from / dayMs) * dayMs;
  const lastEnd = Math.max(firstDay, Math.floor(to / dayMs) * dayMs);
  const columns = ['account_id', 'api_key_id', ...sumColumns] as const;
  const hours = (span: Pick<UsageQuestion, 'from' | 'to'>) =>
    db.selectFrom(hoursOf(db, question, span).where('account_id', '<>', '').as('hours')).select(columns);
  return db
    .selectFrom('usage_days')
    .select(columns)
    .where('day_start', '>=', firstDay)
    .where('day_start', '<', lastEnd)
    .where((expression) =>
      expression.and(question.key === undefined ? [] : [expression('api_key_id', '=', question.key)]),
    )
    .unionAll(hours({ from, to: Math.min(firstDay, to) }))
    .unionAll(hours({ from: lastEnd, to }));
}

/** Accounts of the requested key: one, or none if it was not used in this span. */
async function readOwners(db: Database, { key = '', from, to }: UsageQuestion): Promise<string[]> {
  const owners = await db
    .selectFrom('usage_days')
    .select('account_id')
    .distinct()
    .where('day_start', '>=', from - (from % dayMs))
    .where('day_start', '<', to)
    .where('api_key_id', '=', key)
    .execute();
  // The list must not be empty. The sums of all have no key, so '' matches none.
  return owners.length === 0 ? [''] : owners.map(({ account_id: account }) => account);
}

/** Of each job with the tag what it adds to its hour. */
function jobsOfTag(db: Database, question: UsageQuestion, tag: NonNullable<UsageQuestion['tag']>) {
  const { from, to } = question;
  const one = (condition: RawBuilder<unknown>) => sql<number>`case when ${condition} then 1 else 0 end`;
  const amount = <Column extends 'cost' | 'cached_tokens' | 'saved'>(column: Column) =>
    sql<number>`coalesce(${sql.ref(column)}, 0)`.as(column);
  const since = (column: 'ended_at' | 'first_at') =>
    sql<number>`case when ${sql.ref(column)} > created_at then ${sql.ref(column)} - created_at else 0 end`;
  return db
    .selectFrom('jobs')
    .select(['account_id', 'api_key_id', 'model', 'endpoint', 'capability', 'vendor', 'input_tokens', 'output_tokens'])
    .select([sql<number>`created_at - created_at % ${sql.lit(hourMs)}`.as('hour_start'), sql<number>`1`.as('requests')])
    .select([one(sql`outcome = 'failed'`).as('failed'), one(sql`outcome = 'cancelled'`).as('cancelled')])
    .select([since('ended_at').as('milliseconds'), since('first_at').as('first_milliseconds')])
    .select([amount('cost'), amount('cached_tokens'), amount('saved')])
    .select([one(sql`first_at is not null`).as('first_count'), sql<number>`0`.as('cache_hits')])
    .where('id', '>=', firstIdAt(from - uploadMs))
    .where('id', '<', firstIdAt(to))
    .where('created_at', '>=', from)
    .where('created_at', '<', to)
    .where('outcome', 'is not', null)
    .where((expression) => expression.and([...conditionsOf(question, expression), tagCondition(tag)]));
}

/** The conditions of a question on columns, except its span and tag. */
export function conditionsOf(
  { account, model, key, endpoint, capability, vendor }: UsageQuestion,
  expression: ExpressionBuilder<Tables, 'usage_hours'> | ExpressionBuilder<Tables, 'jobs'>,
) {
  const wanted = { account_id: account, model, api_key_id: key, endpoint, capability, vendor };
  const equals = expression as ExpressionBuilder<Tables, 'usage_hours'>;
  return Object.entries(wanted).flatMap(([column, value]) =>
    value === undefined ? [] : [equals(column as keyof typeof wanted, '=', value)],
  );
}

/** The smallest id of a job at a time (ms since 1970). */
export function firstIdAt(time: number): string {
  return Math.max(0, time).toString(16).padStart(12, '0');
}

function totalOf(rows: readonly UsageSums[]): UsageSums {
  const total = { ...noUsage };
  for (const row of rows) addSums(total, row);
  return total;
}

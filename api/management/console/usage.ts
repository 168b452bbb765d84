import type { ParsedUrlQuery } from 'node:querystring';
import type { Middleware } from 'koa';
import type { Database } from '../../../shared/database/database.ts';
import { formatDollars, toDollars } from '../../../shared/money/cost.ts';
import { BoundedReads, readMs } from '../../bounds/bounded-reads.ts';
import { csvLine } from '../../http/csv-line.ts';
import { invalidQuery, readText, readTime, readWord } from '../../http/read-query.ts';
import { readLatency } from '../../ledger/usage/latency.ts';
import { dayMs, hourMs, type UsageSums } from '../../ledger/usage/usage-hours.ts';
import { readUsage, type UsageQuestion, type UsageRow, usageGroups } from '../../ledger/usage/usage-report.ts';
import type { Services } from '../../services.ts';
import type { State } from '../../state.ts';
import type { AccountOf } from './jobs.ts';
import { readTag } from './read-tag.ts';

const usualDays = 30;
/** Maximum spans: of all, by hour, and for a tag, which is read job by job. */
const maxDays = 3660;
const maxDaysByHour = 92;
const maxDaysByTag = 92;
/** Maximum groups of a file. A report shows fewer, and their total; a file must not lack any. */
const maxFileGroups = 100_000;
/** Parameters of reports. */
export const usageParameters = [
  ...(['group_by', 'from', 'to', 'time_zone_offset_minutes', 'model', 'key', 'endpoint'] as const),
  ...(['capability', 'vendor', 'tag'] as const),
] as const;
/** Ids per statement: databases bound the number of their parameters. */
const idsAtOnce = 1000;

/**
 * `GET …/usage`: usage in groups and in total, with the latency percentiles of the newest requests. Costs are in dollars,
 * times in ms; `group` is the start of an hour or a day (ms since 1970), or an id or a name.
 * @param accountOf returns the account; undefined for all
 */
export function usage({ clock }: Services, db: Database, accountOf: AccountOf): Middleware<State> {
  const reads = new BoundedReads(readMs, 'The usage cannot be read for now.');
  return async (ctx) => {
    ctx.state.endpoint = 'usage';
    const question = readQuestion(ctx.query, accountOf(ctx), clock.now());
    const { rows, total, hasMore } = await reads.read(() => readUsage(db, question));
    const latency = await reads.read(() => readLatency(db, question));
    const names = await reads.read(() => namesOf(db, question, rows));
    ctx.body = {
      object: 'list',
      data: rows.map((row) => ({
        group: row.group,
        label: labelOf(question, row.group, names),
        ...shownSums(row),
      })),
      has_more: hasMore,
      total: shownSums(total),
      latency,
    };
  };
}

/** The columns of a file after those of the group. */
const fileColumns = [
  ...(['requests', 'failed', 'cancelled', 'input_tokens', 'output_tokens'] as const),
  ...(['average_ms', 'average_first_ms'] as const),
];

/** Columns behind those: new ones come last, for those who count them. */
const laterColumns = ['cost_dollars', 'cached_tokens', 'saved_dollars', 'cache_hits'];

/**
 * `GET …/usage.csv`: the groups as a file, a line each. The first column is named after the grouping; days and hours are in
 * the requested time zone.
 */
export function usageCsv({ clock }: Services, db: Database, accountOf: AccountOf): Middleware<State> {
  const reads = new BoundedReads(readMs, 'The usage cannot be read for now.');
  return async (ctx) => {
    ctx.state.endpoint = 'usage.csv';
    const question = readQuestion(ctx.query, accountOf(ctx), clock.now());
    const { groupBy } = question;
    const { rows, hasMore } = await reads.read(() => readUsage(db, question, maxFileGroups));
    if (hasMore) throw invalidQuery('from', 'a shorter span: this one has too many groups for a file');
    const names = await reads.read(() => namesOf(db, question, rows));
    // Groups with a name also have an id.
    const hasId = groupBy === 'key' || groupBy === 'account';
    const lines = rows.map((row) => {
      const sums = shownSums(row);
      const label = labelOf(question, row.group, names);
      const cells = fileColumns.map((name) => sums[name]);
      const money = [formatDollars(row.cost), row.cached_tokens, formatDollars(row.saved), row.cache_hits];
      return csvLine([label, ...(hasId ? [row.group] : []), ...cells, ...money]);
    });
    const head = [groupBy, ...(hasId ? [`${groupBy}_id`] : []), ...fileColumns, ...laterColumns];
    ctx.set({
      'content-type': 'text/csv; charset=utf-8',
      'content-disposition': `attachment; filename="usage-by-${groupBy}.csv"`,
      'x-content-type-options': 'nosniff',
    });
    ctx.body = [csvLine(head), ...lines].join('');
  };
}

/** @param now the end of a report that names none. @throws ApiError 400 that names the parameter. */
function readQuestion(query: ParsedUrlQuery, account: string | undefined, now: number): UsageQuestion {
  const end = readTime(query, 'to') ?? now;
  const begin = readTime(query, 'from') ?? end - usualDays * dayMs;
  // Rounded outward to whole hours.
  const [from, to] = [Math.floor(begin / hourMs) * hourMs, Math.ceil(end / hourMs) * hourMs];
  const groups = account === undefined ? usageGroups : usageGroups.filter((group) => group !== 'account');
  const groupBy = readWord(query, 'group_by', groups) ?? 'day';
  const tag = readTag(query);
  const days = groupBy === 'hour' ? maxDaysByHour : tag === undefined ? maxDays : maxDaysByTag;
  if (begin < 0 || begin >= end) throw invalidQuery('from', "a time before 'to'");
  if (end - begin > days * dayMs) throw invalidQuery('from', `a time at most ${days} days before 'to'`);
  return {
    ...{ account, from, to, groupBy, tag, timeZoneMs: readTimeZone(query) },
    model: readText(query, 'model'),
    key: readText(query, 'key'),
    endpoint: readText(query, 'endpoint'),
    capability: readText(query, 'capability'),
    vendor: readText(query, 'vendor'),
  };
}

/** Offset of the time zone from UTC in minutes: 60 in Central Europe's winter, -300 in New York's. */
function readTimeZone(query: ParsedUrlQuery): number {
  const param = 'time_zone_offset_minutes';
  const value = readText(query, param) ?? '0';
  const minutes = /^[+-]?\d{1,3}$/.test(value) ? Number(value) : Number.NaN;
  // Usage is summed by hours of UTC.
  if (minutes % 60 === 0 && minutes >= -720 && minutes <= 840) return minutes * 60_000;
  throw invalidQuery(param, 'whole hours, as minutes from -720 to 840');
}

/** Names of API keys or accounts by id. */
async function namesOf(
  db: Database,
  { groupBy }: UsageQuestion,
  rows: readonly UsageRow[],
): Promise<ReadonlyMap<string, string>> {
  const table = groupBy === 'key' ? 'api_keys' : groupBy === 'account' ? 'accounts' : undefined;
  if (table === undefined || rows.length === 0) return new Map();
  const ids = rows.map(({ group }) => String(group));
  const names = new Map<string, string>();
  for (let start = 0; start < ids.length; start += idsAtOnce) {
    const some = ids.slice(start, start + idsAtOnce);
    const named = await db.selectFrom(table).select(['id', 'name']).where('id', 'in', some).execute();
    for (const { id, name } of named) names.set(id, name);
  }
  return names;
}

function labelOf(
  { groupBy, timeZoneMs }: UsageQuestion,
  group: UsageRow['group'],
  names: ReadonlyMap<string, string>,
): string {
  if (typeof group === 'number') {
    const local = new Date(group + timeZoneMs).toISOString();
    return groupBy === 'day' ? local.slice(0, 10) : `${local.slice(0, 10)} ${local.slice(11, 16)}`;
  }
  if (group === '') return 'none';
  return names.get(group) ?? group;
}

function shownSums({ milliseconds, first_milliseconds: first, first_count: firsts, ...sums }: UsageSums) {
  const { requests, failed, cancelled, input_tokens, output_tokens, cached_tokens, cost, saved, cache_hits } = sums;
  return {
    ...{ requests, failed, cancelled, input_tokens, output_tokens, cached_tokens, cache_hits },
    cost: toDollars(cost),
    saved: toDollars(saved),
    average_ms: requests === 0 ? null : Math.round(milliseconds / requests),
    average_first_ms: firsts === 0 ? null : Math.round(first / firsts),
  };
}

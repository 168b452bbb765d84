import type { ParsedUrlQuery } from 'node:querystring';
import type { Middleware } from 'koa';
import type { Database } from '../../../shared/database/database.ts';
import { toDollars } from '../../../shared/money/cost.ts';
import { BoundedReads, readMs } from '../../bounds/bounded-reads.ts';
import { invalidQuery, readText, readWord } from '../../http/read-query.ts';
import { dayMs, hourMs } from '../../ledger/usage/usage-hours.ts';
import { type ModelUsageRow, readUsageByModel } from '../../ledger/usage/usage-report.ts';
import type { Services } from '../../services.ts';
import type { State } from '../../state.ts';

/** Maximum rows of a report, one per model and bucket. Larger ones have to be requested in shorter spans. */
const maxRows = 20_000;
/** The end of the year 9999, in seconds. */
const lastSecond = 253_402_300_799;

/** Widths of buckets in OpenAI's usage API; spans in buckets. */
export const bucketWidths = {
  '1h': { ms: hourMs, groupBy: 'hour', usual: 24, most: 168 },
  '1d': { ms: dayMs, groupBy: 'day', usual: 7, most: 92 },
} as const;
const widthNames = Object.keys(bucketWidths) as (keyof typeof bucketWidths)[];

/** The requested usage: whole buckets, in ms since 1970. */
interface Span {
  readonly width: (typeof bucketWidths)[keyof typeof bucketWidths];
  readonly from: number;
  readonly to: number;
}

/** `GET /v1/usage`: usage of the key's account by hour or day (UTC) and model. The span is rounded outward to whole buckets. */
export function usageByModel({ clock }: Services, db: Database): Middleware<State> {
  const reads = new BoundedReads(readMs, 'The usage cannot be read for now.');
  return async (ctx) => {
    ctx.state.endpoint = 'usage';
    const { width, from, to } = readSpan(ctx.query, clock.now());
    const question = { account: ctx.state.caller.account, from, to, groupBy: width.groupBy, timeZoneMs: 0 };
    const rows = await reads.read(() => readUsageByModel(db, question, maxRows + 1));
    if (rows.length > maxRows) throw invalidQuery('start_time', 'a shorter span: this one has too many models');
    ctx.body = { object: 'list', data: buckets({ width, from, to }, rows) };
  };
}

function buckets({ width, from, to }: Span, rows: readonly ModelUsageRow[]) {
  const byStart = new Map<number, ModelUsageRow[]>();
  for (const row of rows) {
    const of = byStart.get(row.group);
    if (of === undefined) byStart.set(row.group, [row]);
    else of.push(row);
  }
  const starts = Array.from({ length: (to - from) / width.ms }, (_, index) => from + index * width.ms);
  return starts.map((start) => ({
    object: 'bucket',
    start_time: start / 1000,
    end_time: (start + width.ms) / 1000,
    results: (byStart.get(start) ?? []).map((row) => ({
      object: 'usage.result',
      model: row.model,
      requests: row.requests,
      input_tokens: row.input_tokens,
      output_tokens: row.output_tokens,
      cached_tokens: row.cached_tokens,
      cost: toDollars(row.cost),
      saved: toDollars(row.saved),
      cache_hits: row.cache_hits,
    })),
  }));
}

/** @param now the end of a report that names none. @throws ApiError 400 that names the parameter. */
function readSpan(query: ParsedUrlQuery, now: number): Span {
  const width = bucketWidths[readWord(query, 'bucket_width', widthNames) ?? '1d'];
  const end = readSeconds(query, 'end_time') ?? now;
  const to = Math.ceil(end / width.ms) * width.ms;
  const start = readSeconds(query, 'start_time') ?? to - width.usual * width.ms;
  const from = Math.floor(start / width.ms) * width.ms;
  if (start < 0 || start >= end) throw invalidQuery('start_time', "a time before 'end_time'");
  if (to - from > width.most * width.ms) {
    throw invalidQuery('start_time', `a span of at most ${width.most} buckets up to 'end_time'`);
  }
  return { width, from, to };
}

/** Reads a time in seconds since 1970, as ms. @throws ApiError 400 */
function readSeconds(query: ParsedUrlQuery, param: string): number | undefined {
  const text = readText(query, param);
  if (text === undefined) return undefined;
  if (/^\d{1,12}$/.test(text) && Number(text) <= lastSecond) return Number(text) * 1000;
  throw invalidQuery(param, 'seconds since 1970');
}

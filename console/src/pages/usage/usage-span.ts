import { periods, type UsageFilters, usualPeriod } from './usage-search.ts';

export type SpanFilters = Pick<UsageFilters, 'period' | 'from' | 'to'>;

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/**
 * The span of the filters, in ms since 1970; `to` is exclusive. Whole hours, as the gateway sums them, so that sums, lists
 * and files cover the same jobs.
 */
export function spanOf(filters: SpanFilters, now = Date.now()): { from: number; to: number } {
  const to = Math.ceil((filters.to ?? now) / hourMs) * hourMs;
  const from = filters.from ?? Math.min(now, to) - periods[filters.period ?? usualPeriod] * dayMs;
  return { from: Math.floor(from / hourMs) * hourMs, to };
}

/**
 * The same for a list of jobs: without any filter, those of any time. It has no end but a chosen one: new jobs appear in an open
 * page for as long as it is open.
 */
export function jobSpanOf({ period, from, to }: SpanFilters): { from?: number; to?: number } {
  if (to !== undefined) return spanOf({ period, from, to });
  return period === undefined && from === undefined ? {} : { from: spanOf({ period, from }).from };
}

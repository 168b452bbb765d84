import { periods, type UsageFilters } from './usage-search.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/**
 * The span that filters mean, in ms since 1970; `to` is the first moment that is not in it. Whole hours, as the gateway sums
 * them: so sums, lists and files are of the same jobs.
 */
export function spanOf(filters: UsageFilters, now = Date.now()): { from: number; to: number } {
  const to = Math.ceil((filters.to ?? now) / hourMs) * hourMs;
  const from = filters.from ?? Math.min(now, to) - periods[filters.period ?? '30d'] * dayMs;
  return { from: Math.floor(from / hourMs) * hourMs, to };
}

import { queryOptions } from '@tanstack/react-query';
import { address, type Query, request } from './request.ts';

/** Money in dollars, times in ms; null: nothing was measured. */
export interface UsageSums {
  readonly requests: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  /** The part of the input tokens that came from vendors' prompt caches, and what that saved. */
  readonly cached_tokens: number;
  readonly saved: number;
  /** Requests that cached answers were the reply to; `requests` does not count them. */
  readonly cache_hits: number;
  readonly cost: number;
  readonly average_ms: number | null;
  readonly average_first_ms: number | null;
}

/** One group: `group` is the start of an hour or day (ms since 1970), or an id or name; `label` is displayed. */
export interface UsageRow extends UsageSums {
  readonly group: string | number;
  readonly label: string;
}

/** Times in ms within which 50, 95 and 99 percent of requests stay. */
export interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/** Durations of the newest requests; `requests`: number measured. */
export interface Latency {
  readonly requests: number;
  readonly whole: Percentiles | null;
  readonly first: Percentiles | null;
}

export interface Usage {
  readonly data: readonly UsageRow[];
  /** Whether groups are left out, those that cost least; the total and the file have them. */
  readonly has_more: boolean;
  readonly total: UsageSums;
  readonly latency: Latency;
}

/** The gateway sums by UTC hours: in zones offset by half an hour, days start at half past midnight. */
function wholeHours(minutes: number): number {
  return Math.floor(minutes / 60) * 60;
}

/** Days and hours in the user's time zone. */
function inReadersZone(query: Query): Query {
  return { ...query, time_zone_offset_minutes: wholeHours(-new Date().getTimezoneOffset()) };
}

/**
 * URL of the groups as a file.
 * @param path as in `usageQuery`
 */
export function usageFile(query: Query, path: string): string {
  return address(`${path}.csv`, inReadersZone(query));
}

const hourMs = 3_600_000;

/** Whether a query is that of the same view as another, an hour later at most. */
function isSameView(before: Query, now: Query): boolean {
  const moved = Number(now.to) - Number(before.to);
  const names = [...new Set([...Object.keys(before), ...Object.keys(now)])].filter((name) => !/^(from|to)$/.test(name));
  return (
    moved >= 0 &&
    moved <= hourMs &&
    Number(now.from) - Number(before.from) === moved &&
    names.every((name) => before[name] === now[name])
  );
}

/**
 * The usage in groups. While it loads, that of the hour before is shown; of another view it would be taken for this one.
 * @param path `/usage`, or `/admin/v1/usage` for all accounts
 */
export function usageQuery(query: Query, path = '/usage') {
  return queryOptions({
    queryKey: [path, query],
    queryFn: ({ signal }) => request<Usage>('GET', path, { query: inReadersZone(query), signal }),
    placeholderData: (before: Usage | undefined, last) =>
      last !== undefined && last.queryKey[0] === path && isSameView(last.queryKey[1] as Query, query)
        ? before
        : undefined,
  });
}

/** Whether there is anything to show of a usage. */
export function isUsed({ requests, cache_hits: hits }: UsageSums): boolean {
  return requests + hits > 0;
}

import { queryOptions } from '@tanstack/react-query';
import { address, type Query, request } from './request.ts';

/** Money in dollars, times in ms; null: nothing was measured. */
export interface UsageSums {
  readonly requests: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cost: number;
  readonly average_ms: number | null;
  readonly average_first_ms: number | null;
}

/** One group: `group` is the beginning of an hour or day (ms since 1970), or an id or name; `label` is what is shown. */
export interface UsageRow extends UsageSums {
  readonly group: string | number;
  readonly label: string;
}

/** Times in ms that half, 95 and 99 of a hundred requests stay within. */
export interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/** How long the newest requests took; `requests`: how many were measured. */
export interface Latency {
  readonly requests: number;
  readonly whole: Percentiles | null;
  readonly first: Percentiles | null;
}

export interface Usage {
  readonly data: readonly UsageRow[];
  readonly total: UsageSums;
  readonly latency: Latency;
}

/** The gateway sums by hours of UTC: where clocks are half an hour beside them, days begin at half past midnight. */
function wholeHours(minutes: number): number {
  return Math.floor(minutes / 60) * 60;
}

/** Days and hours as the reader has them. */
function inReadersZone(query: Query): Query {
  return { ...query, time_zone_offset_minutes: wholeHours(-new Date().getTimezoneOffset()) };
}

/** Where the groups are as a file. @param path as of `usageQuery` */
export function usageFile(query: Query, path: string): string {
  return address(`${path}.csv`, inReadersZone(query));
}

/** @param path `/usage`, or `/admin/v1/usage` for all accounts */
export function usageQuery(query: Query, path = '/usage') {
  return queryOptions({
    queryKey: [path, query],
    queryFn: ({ signal }) => request<Usage>('GET', path, { query: inReadersZone(query), signal }),
  });
}

import { queryOptions } from '@tanstack/react-query';
import { type Query, request } from './request.ts';

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

export interface Usage {
  readonly data: readonly UsageRow[];
  readonly total: UsageSums;
}

/** The gateway sums by hours of UTC: where clocks are half an hour beside them, days begin at half past midnight. */
function wholeHours(minutes: number): number {
  return Math.floor(minutes / 60) * 60;
}

/** @param path `/usage`, or `/admin/v1/usage` for all accounts */
export function usageQuery(query: Query, path = '/usage') {
  return queryOptions({
    queryKey: [path, query],
    queryFn: ({ signal }) =>
      request<Usage>('GET', path, {
        query: { ...query, time_zone_offset_minutes: wholeHours(-new Date().getTimezoneOffset()) },
        signal,
      }),
  });
}

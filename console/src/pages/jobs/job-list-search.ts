/** Filters of a list of jobs; all of them are in the address, so a view can be sent on. */
export interface JobListSearch {
  readonly status?: string;
  readonly model?: string;
  readonly key?: string;
  readonly endpoint?: string;
  /** Operators only: of one account. */
  readonly account?: string;
  /** Days, `2026-11-22`; both belong to the span. */
  readonly from?: string;
  readonly to?: string;
}

const names = ['status', 'model', 'key', 'endpoint', 'account', 'from', 'to'] as const;

/** The filters that an address names. */
export function readJobListSearch(given: Record<string, unknown>): JobListSearch {
  const named = names.filter((name) => typeof given[name] === 'string' || typeof given[name] === 'number');
  return Object.fromEntries(named.map((name) => [name, String(given[name])]).filter(([, value]) => value !== ''));
}

/** The same as the JSON routes take them: times in ms, `to` up to the day's end in the reader's own zone. */
export function jobListQuery({ from, to, ...rest }: JobListSearch): Record<string, string | number | undefined> {
  const start = from === undefined ? Number.NaN : new Date(`${from}T00:00:00`).getTime();
  const end = to === undefined ? Number.NaN : new Date(`${to}T23:59:59.999`).getTime();
  return {
    ...rest,
    ...(Number.isFinite(start) && { from: start }),
    ...(Number.isFinite(end) && { to: end + 1 }),
  };
}

/** Groupings of an account's usage, and of that of all accounts. */
export const ownGroupings = ['day', 'hour', 'model', 'key', 'endpoint', 'capability', 'vendor'] as const;
export const groupings = ['day', 'hour', 'account', 'model', 'key', 'endpoint', 'capability', 'vendor'] as const;
export type Grouping = (typeof groupings)[number];

/** Selectable periods in days, by their name in the address. */
export const periods = { '24h': 1, '7d': 7, '30d': 30, '90d': 90 } as const;
export type Period = keyof typeof periods;
/** Default period of usage. */
export const usualPeriod: Period = '30d';

const textFilters = ['model', 'key', 'endpoint', 'capability', 'vendor', 'tag'] as const;

/** Filters shared by the usage page and its list of jobs, all of which are in the address, so that a view can be shared. */
export interface UsageFilters {
  readonly period?: Period | undefined;
  /** Ms since 1970; together they replace the period. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  /** Operators only: a single account. */
  readonly account?: string;
  readonly model?: string;
  readonly key?: string;
  readonly endpoint?: string;
  readonly capability?: string;
  readonly vendor?: string;
  /** `name:value` of a request's metadata. */
  readonly tag?: string;
}

export interface UsageSearch extends UsageFilters {
  readonly group?: Grouping;
}

export interface JobsSearch extends UsageFilters {
  readonly status?: string;
}

/** A change of a view's search; an undefined value removes a filter. */
export type SearchChange<Search> = { readonly [Name in keyof Search]?: Search[Name] | undefined };

/** Applies a change to the search. */
export function withChange<Search extends object>(before: Search, change: SearchChange<Search>): Search {
  const after = Object.entries({ ...before, ...change }).filter(([, value]) => value !== undefined);
  return Object.fromEntries(after) as Search;
}

type Given = Record<string, unknown>;

/** The year 9999: the last that a field for a time can show. */
const lastTime = 253_402_300_799_999;

function isTime(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= lastTime;
}

function readFilters(given: Given, names: readonly (keyof UsageFilters)[]): UsageFilters {
  const text = (name: keyof UsageFilters): object => {
    const value = given[name];
    // A model's name may be all digits: an address does not distinguish a number from a text.
    return value === undefined || value === '' || typeof value === 'object' ? {} : { [name]: String(value) };
  };
  const time = (name: 'from' | 'to'): object => (isTime(given[name]) ? { [name]: given[name] } : {});
  return {
    ...(typeof given.period === 'string' && Object.hasOwn(periods, given.period)
      ? { period: given.period as Period }
      : {}),
    ...time('from'),
    ...time('to'),
    ...Object.assign({}, ...names.map(text)),
  };
}

function readGroup(given: Given, known: readonly Grouping[]): { group?: Grouping } {
  const group = known.find((name) => name === given.group);
  return group === undefined ? {} : { group };
}

function readStatus(given: Given): { status?: string } {
  return typeof given.status === 'string' ? { status: given.status } : {};
}

export function readUsageSearch(given: Given): UsageSearch {
  return { ...readFilters(given, textFilters), ...readGroup(given, ownGroupings) };
}

export function readJobsSearch(given: Given): JobsSearch {
  return { ...readFilters(given, textFilters), ...readStatus(given) };
}

/** The same for operators, who can choose an account. */
export function readAllUsageSearch(given: Given): UsageSearch {
  return { ...readFilters(given, [...textFilters, 'account']), ...readGroup(given, groupings) };
}

export function readAllJobsSearch(given: Given): JobsSearch {
  return { ...readFilters(given, [...textFilters, 'account']), ...readStatus(given) };
}

/** The overview's period: only the shorter ones. */
export function readPeriod(given: Given): { period?: '24h' | '7d' | '30d' } {
  const period = (['24h', '7d', '30d'] as const).find((name) => name === given.period);
  return period === undefined ? {} : { period };
}

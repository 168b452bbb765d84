/** What an account's usage is grouped by, and that of all accounts. */
export const ownGroupings = ['day', 'hour', 'model', 'key', 'endpoint', 'capability', 'vendor'] as const;
export const groupings = ['day', 'hour', 'account', 'model', 'key', 'endpoint', 'capability', 'vendor'] as const;
export type Grouping = (typeof groupings)[number];

/** Spans that can be chosen, in days, by their name in the address. */
export const periods = { '24h': 1, '7d': 7, '30d': 30, '90d': 90 } as const;
export type Period = keyof typeof periods;
/** Of usage, where none is chosen. */
export const usualPeriod: Period = '30d';

const textFilters = ['model', 'key', 'endpoint', 'capability', 'vendor', 'tag'] as const;

/** Filters that the usage page and its list of jobs share; all of them are in the address, so a view can be sent on. */
export interface UsageFilters {
  readonly period?: Period | undefined;
  /** Ms since 1970; together they stand in for the period. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  /** Operators only: of one account. */
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

/** A change of a view's search; an undefined value takes a filter away. */
export type SearchChange<Search> = { readonly [Name in keyof Search]?: Search[Name] | undefined };

/** The search with a change. */
export function withChange<Search extends object>(before: Search, change: SearchChange<Search>): Search {
  const after = Object.entries({ ...before, ...change }).filter(([, value]) => value !== undefined);
  return Object.fromEntries(after) as Search;
}

type Given = Record<string, unknown>;

function readFilters(given: Given, names: readonly (keyof UsageFilters)[]): UsageFilters {
  const text = (name: keyof UsageFilters): object => {
    const value = given[name];
    // A model may be named by digits only: the address does not tell a number from a text.
    return value === undefined || value === '' || typeof value === 'object' ? {} : { [name]: String(value) };
  };
  const time = (name: 'from' | 'to'): object => (Number.isSafeInteger(given[name]) ? { [name]: given[name] } : {});
  return {
    ...(typeof given.period === 'string' && given.period in periods ? { period: given.period as Period } : {}),
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

/** The overview's period; the shorter ones are all it shows. */
export function readPeriod(given: Given): { period?: '24h' | '7d' | '30d' } {
  const period = (['24h', '7d', '30d'] as const).find((name) => name === given.period);
  return period === undefined ? {} : { period };
}

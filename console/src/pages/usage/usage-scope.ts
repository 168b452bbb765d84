import { type Grouping, groupings, ownGroupings } from './usage-search.ts';

/** Whose usage is shown: the user's account's, or, for operators, that of all. */
export interface UsageScope {
  /** The usage to load, and the list of jobs behind it. */
  readonly usagePath: '/usage' | '/admin/v1/usage';
  readonly jobsPath: '/jobs' | '/admin/v1/jobs';
  /** The pages that show them. */
  readonly usagePage: '/usage' | '/operator/usage';
  readonly jobsPage: '/jobs' | '/operator/jobs';
  readonly jobPage: '/jobs/$jobId' | '/operator/jobs/$jobId';
  readonly groupings: readonly Grouping[];
  readonly isOfAll: boolean;
}

export const ownScope: UsageScope = {
  usagePath: '/usage',
  jobsPath: '/jobs',
  usagePage: '/usage',
  jobsPage: '/jobs',
  jobPage: '/jobs/$jobId',
  groupings: ownGroupings,
  isOfAll: false,
};

export const operatorScope: UsageScope = {
  usagePath: '/admin/v1/usage',
  jobsPath: '/admin/v1/jobs',
  usagePage: '/operator/usage',
  jobsPage: '/operator/jobs',
  jobPage: '/operator/jobs/$jobId',
  groupings,
  isOfAll: true,
};

import { z } from 'zod';
import { capabilities } from '../../shared/capabilities/capability.ts';
import { jobStatuses } from '../ledger/job-list.ts';
import { usageGroups } from '../ledger/usage/usage-report.ts';
import { availableOnly } from '../management/console/models.ts';

/** The parameters of a page of a list. */
export function pageQuery(usual: number, most: number, least = 1): Record<string, z.ZodType> {
  return {
    limit: z.int().min(least).max(most).default(usual).describe('How many to return at most.'),
    after: z.string().describe('The id of the item behind which the page begins.'),
  };
}

export const orderQuery = {
  order: z.enum(['asc', 'desc']).default('desc').describe('By the time of creation.'),
};

const model = z.string().describe('A model id.');
const ms = z.int().min(0);

/** The parameters of job lists of the console and of operators. */
export const jobQuery = {
  status: z.enum(jobStatuses),
  model,
  key: z.string().describe('The id of an API key.'),
  endpoint: z.string(),
  vendor: z.string(),
  capability: z.string(),
  tag: z.string().describe("A pair of the request's `metadata`, as `name:value`."),
  from: ms.describe('Made at this time or later, in milliseconds since 1970.'),
  to: ms.describe('Made before this time, in milliseconds since 1970.'),
};

export const liveJobQuery = {
  status: z.enum(['queued', 'in_progress']),
  capability: z.enum(capabilities),
  key: z.string(),
  model,
  endpoint: z.string(),
};

export const modelsQuery = { available: z.enum(availableOnly).describe('`true`: only models that can be used now.') };

/** The parameters of usage of the console and of operators. */
export const usageQuery = {
  group_by: z.enum(usageGroups).default('day').describe('`account` is for operators.'),
  from: ms.describe('In milliseconds since 1970; left out: 30 days before `to`.'),
  to: ms.describe('In milliseconds since 1970; left out: now.'),
  time_zone_offset_minutes: z.int().min(-720).max(840).multipleOf(60).default(0),
  model,
  key: z.string(),
  endpoint: z.string(),
  capability: z.string(),
  vendor: z.string(),
  tag: z.string().describe("A pair of the request's `metadata`, as `name:value`."),
};

export const accountQuery = { account: z.string().describe('The id of an account; left out: all.') };

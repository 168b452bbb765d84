import { z } from 'zod';
import { budgetPeriods } from '../../../shared/accounts/account-money.ts';
import { dollars, ms } from './shapes.ts';

/** What a key may spend in a period. */
export const budget = z.object({ amount: dollars, period: z.enum(budgetPeriods), spent: dollars }).nullable();
/** Limits by model. */
export const modelLimits = z
  .record(z.string(), z.object({ rpm: z.int().optional(), tpm: z.int().optional() }))
  .nullable();
/** A list that may be missing. */
export const texts = z.array(z.string()).nullable();
/** A limit of a key. */
export const limit = z.int().nullable().describe('Null: unlimited.');
/** An API key. */
export const key = z.object({
  id: z.string(),
  object: z.literal('key'),
  account: z.string(),
  name: z.string(),
  prefix: z.string().describe('The beginning of its text.'),
  kind: z.string(),
  status: z.string(),
  created_at: ms,
  last_used_at: ms.nullable(),
  expires_at: ms.nullable(),
  revoked_at: ms.nullable(),
  rotated_to: z.string().nullable(),
  capabilities: texts,
  models: texts,
  rpm: limit,
  tpm: limit,
  concurrency: limit,
  model_limits: modelLimits,
  budget,
  on_disconnect: z.string().nullable(),
  unsupported_parameters: z.string().nullable(),
  cache_breakpoints: z.string().nullable(),
  priority: z.string().nullable(),
  max_priority: z.string().nullable(),
  single_flight: z.boolean().nullable(),
  cache_seconds: z
    .int()
    .nullable()
    .describe(
      'Seconds that answers to its requests are cached, unless they say otherwise by `X-Sluice-Cache`. Null: not.',
    ),
  vendor_ids: texts,
});

/** An account. */
export const account = z.object({
  id: z.string(),
  object: z.literal('account'),
  name: z.string(),
  is_unlimited: z.boolean(),
  suspended: z.boolean(),
  suspended_at: ms.nullable(),
  queue_weight: z.int(),
  queue_by_key: z.boolean(),
  max_priority: z.string(),
  created_at: ms,
  credit: dollars,
  charged: dollars,
  balance: dollars.nullable().describe('Null: unlimited.'),
});
/** Credit of an account. */
export const credit = z.object({
  id: z.string(),
  object: z.literal('credit'),
  account: z.string(),
  amount: dollars,
  note: z.string(),
  created_at: ms,
  created_by: z.string(),
});
/** A user of the console. */
export const user = z.object({
  id: z.string(),
  object: z.literal('user'),
  email: z.string(),
  name: z.string(),
  role: z.enum(['user', 'operator']),
  account_id: z.string(),
  account_name: z.string().nullable(),
  disabled: z.boolean(),
  created_at: ms,
});

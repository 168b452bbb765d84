import { z } from 'zod';
import { budgetPeriods, maxBudget } from '../../../shared/accounts/account-money.ts';
import { maxCacheSeconds } from '../../../shared/accounts/api-key.ts';
import type { KeyChange } from '../../../shared/accounts/change-api-key.ts';
import { capabilities } from '../../../shared/capabilities/capability.ts';
import { invalidParameter } from '../../pipeline/request-fields.ts';

const whole = (most: number) => z.int().min(1).max(most);
/** Per minute. */
const maxRequests = 1_000_000_000;
const maxTokens = 1_000_000_000_000;
const maxUnfinished = 9_999_999;
const maxModels = 200;
const maxVendorIds = 1000;
const maxOverlapSeconds = 30 * 86_400;
const nanosPerDollar = 1_000_000_000;
const priorities = ['low', 'normal', 'high'] as const;

const name = z.string().trim().min(1).max(100);
const modelId = z.string().min(1).max(256);

/** Settings of a key; null removes a limit. Times are milliseconds since 1970. */
const settings = {
  expires_at: z.int().max(8_640_000_000_000_000).nullable().optional(),
  capabilities: z.array(z.enum(capabilities)).min(1).max(capabilities.length).nullable().optional(),
  models: z
    .array(modelId.regex(/^[^*]*\*?$/, 'a star can stand only at the end'))
    .min(1)
    .max(maxModels)
    .nullable()
    .optional(),
  rpm: whole(maxRequests).nullable().optional(),
  tpm: whole(maxTokens).nullable().optional(),
  model_limits: z
    .record(modelId, z.strictObject({ rpm: whole(maxRequests).optional(), tpm: whole(maxTokens).optional() }))
    .refine((limits) => Object.keys(limits).length <= maxModels, `expected at most ${maxModels} models`)
    .nullable()
    .optional(),
  /** In dollars. */
  budget: z
    .strictObject({
      amount: z
        .number()
        .min(0)
        .max(maxBudget / nanosPerDollar)
        // Rounded to 0, it would be a key that can pay for nothing.
        .refine((dollars) => dollars === 0 || Math.round(dollars * nanosPerDollar) > 0, 'expected 0 or at least 1e-9'),
      period: z.enum(budgetPeriods),
    })
    .nullable()
    .optional(),
  concurrency: whole(maxUnfinished).nullable().optional(),
  on_disconnect: z.enum(['cancel', 'continue']).nullable().optional(),
  unsupported_parameters: z.enum(['refuse', 'drop']).nullable().optional(),
  cache_breakpoints: z.enum(['caller', 'automatic']).nullable().optional(),
  priority: z.enum(priorities).nullable().optional(),
  max_priority: z.enum(priorities).nullable().optional(),
  single_flight: z.boolean().nullable().optional(),
  cache_seconds: whole(maxCacheSeconds).nullable().optional(),
};

/** The body of `POST …/keys`. */
export const newKeyFields = z.strictObject({ name, ...settings });

/** Settings for operators only: they open the operators' own accounts at vendors to the key's callers. */
const operatorSettings = {
  ...settings,
  vendor_ids: z
    .array(
      z
        .string()
        .min(1)
        .max(512)
        .regex(/^[^*]*\*?$/, 'a star can stand only at the end'),
    )
    .min(1)
    .max(maxVendorIds)
    .nullable()
    .optional(),
};

/** The same for operators, who can also make operator keys. */
export const operatorNewKeyFields = z.strictObject({
  name,
  kind: z.enum(['standard', 'operator']).optional(),
  ...operatorSettings,
});

/** The body of `PATCH …/keys/{id}`. */
export const keyChangeFields = z.strictObject({ name: name.optional(), ...settings });

/** The same for operators. */
export const operatorKeyChangeFields = z.strictObject({ name: name.optional(), ...operatorSettings });

/** The body of `POST …/keys/{id}/rotate`. */
export const rotationFields = z.strictObject({
  overlap_seconds: z.int().min(0).max(maxOverlapSeconds).default(86_400),
});

/** Converts fields to a change of a key. @throws ApiError 400 for an expiry in the past. */
export function keyChangeOf(fields: z.output<typeof operatorKeyChangeFields>): KeyChange {
  const { expires_at: expiresAt, budget } = fields;
  if (typeof expiresAt === 'number' && expiresAt <= Date.now()) {
    throw invalidParameter('expires_at', "Invalid 'expires_at': expected a time to come, in milliseconds since 1970.");
  }
  const nanos = budget && { amount: Math.round(budget.amount * nanosPerDollar), period: budget.period };
  return given({
    name: fields.name,
    expiresAt,
    capabilities: fields.capabilities,
    models: fields.models,
    rpm: fields.rpm,
    tpm: fields.tpm,
    modelLimits: fields.model_limits,
    budget: nanos,
    concurrency: fields.concurrency,
    onDisconnect: fields.on_disconnect,
    unsupportedParameters: fields.unsupported_parameters,
    cacheBreakpoints: fields.cache_breakpoints,
    priority: fields.priority,
    maxPriority: fields.max_priority,
    singleFlight: fields.single_flight,
    cacheSeconds: fields.cache_seconds,
    vendorIds: fields.vendor_ids,
  });
}

/** Keeps the given values, with undefined for null. */
function given(values: { [Name in keyof KeyChange]: KeyChange[Name] | null | undefined }): KeyChange {
  const entries = Object.entries(values).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries.map(([name, value]) => [name, value ?? undefined]));
}

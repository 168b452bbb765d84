import { z } from 'zod';
import { account, budget, credit, key, limit, modelLimits, texts, user } from './objects/accounts.ts';
import { consoleJob, job, listedJob, quote } from './objects/jobs.ts';
import { consoleModel, model, modelRoute, prices, queue, vendor, worker } from './objects/operation.ts';
import { consolePage, dollars, ms, page, seconds } from './objects/shapes.ts';

const cachedTokens = z.int().describe('The part of the input tokens that vendors served from their prompt caches.');
const saved = dollars.describe('How much more these would have cost at the plain price of input.');

const cacheHits = z.int().describe('Requests that cached answers were the reply to; `requests` does not count them.');

const sums = z.object({
  requests: z.int(),
  failed: z.int(),
  cancelled: z.int(),
  input_tokens: z.int(),
  output_tokens: z.int(),
  cached_tokens: cachedTokens,
  cost: dollars,
  saved,
  cache_hits: cacheHits,
  average_ms: z.int().nullable(),
  average_first_ms: z.int().nullable(),
});

const percentiles = z.object({ p50: ms, p95: ms, p99: ms }).nullable();

/** The gateway's own objects. Clients must expect further fields: the document leaves the objects open. */
export const ownObjects = {
  Error: z.object({
    error: z.object({
      message: z.string(),
      type: z.string(),
      param: z.string().nullable().describe('The field at fault.'),
      code: z.string().nullable(),
    }),
  }),
  Job: job,
  Quote: quote,
  JobPage: page(listedJob),
  UsageReport: z.object({
    object: z.literal('list'),
    data: z.array(
      z.object({
        object: z.literal('bucket'),
        start_time: seconds,
        end_time: seconds,
        results: z.array(
          z.object({
            object: z.literal('usage.result'),
            model: z.string(),
            requests: z.int(),
            input_tokens: z.int(),
            output_tokens: z.int(),
            cached_tokens: cachedTokens,
            cost: dollars,
            saved,
            cache_hits: cacheHits,
          }),
        ),
      }),
    ),
  }),
  OwnKey: z.object({
    id: z.string(),
    object: z.literal('key'),
    name: z.string(),
    created_at: seconds,
    expires_at: seconds.nullable(),
    capabilities: texts,
    models: texts,
    limits: z.object({ rpm: limit, tpm: limit, concurrency: limit, models: modelLimits, budget }),
    account: z.object({
      id: z.string(),
      name: z.string(),
      balance: dollars.nullable().describe('Null: unlimited.'),
    }),
  }),
  Health: z.object({ status: z.string() }),
  Readiness: z.object({ status: z.string(), checks: z.record(z.string(), z.string()) }),
  Settings: z.object({
    sign_up: z.boolean(),
    oidc: z.object({ name: z.string() }).nullable(),
    mail: z.boolean(),
    sandbox: z.boolean(),
    base_url: z.string(),
  }),
  Session: z.object({
    user: z.object({
      id: z.string(),
      email: z.string(),
      name: z.string(),
      role: z.enum(['user', 'operator']),
      authenticator: z.enum(['on', 'off', 'required']),
    }),
    account: z.object({
      id: z.string(),
      name: z.string(),
      balance: dollars.nullable().describe('Null: unlimited.'),
      suspended: z.boolean(),
    }),
  }),
  ConsoleJob: consoleJob,
  ConsoleJobPage: consolePage(consoleJob),
  FoundRequest: z.object({
    id: z.string(),
    object: z.literal('request'),
    account_id: z.string().nullable().describe('Null: it came without a valid key.'),
    job_id: z.string().nullable(),
    refusal: z
      .object({
        created_at: ms,
        method: z.string(),
        path: z.string(),
        status: z.int(),
        error: z.object({
          type: z.string(),
          code: z.string(),
          message: z.string(),
          param: z.string().nullable(),
        }),
        key: z.object({ id: z.string(), name: z.string().nullable() }).nullable(),
      })
      .nullable()
      .describe('Why it made no job. It is kept for 7 days.'),
  }),
  ConsoleUsage: z.object({
    object: z.literal('list'),
    data: z.array(sums.extend({ group: z.union([z.int(), z.string()]), label: z.string() })),
    has_more: z.boolean().describe('Whether groups are left out: these are the thousand that cost most.'),
    total: sums,
    latency: z.object({
      requests: z.int().describe('How many of the newest 20,000 requests of the span fit: these were measured.'),
      whole: percentiles.describe('From a request to the end of its answer.'),
      first: percentiles.describe('From a request to the first piece of its streamed answer.'),
    }),
  }),
  ConsoleModels: z.object({ data: z.array(consoleModel) }),
  ConsoleModel: consoleModel.extend({
    alias_of: z.string().nullable().describe('The model that it is another name of.'),
    aliases: z.array(z.string()).describe('Its other names.'),
    fallbacks: z.array(z.string()).describe('Models that serve requests once all its routes have failed.'),
    routes: z.array(
      z.object({
        route: z.string(),
        vendor: z.string(),
        on: z.boolean(),
        settings: z.array(z.string()).describe('What an operator sets to turn the vendor on.'),
        region: z.string().nullable(),
        context_window: z.int().nullable(),
        max_output_tokens: z.int().nullable(),
        prices,
      }),
    ),
  }),
  Key: key,
  KeyWithText: key.extend({ key: z.string().describe('The key itself: it is shown only here.') }),
  KeyPage: consolePage(key),
  Account: account,
  AccountPage: consolePage(account),
  Credit: credit,
  CreditPage: consolePage(credit),
  User: user,
  UserPage: consolePage(user),
  InvitedUser: user.extend({ invitation_url: z.string() }),
  UserDeleted: z.object({ id: z.string(), object: z.literal('user'), deleted: z.literal(true) }),
  PasswordReset: z.object({ url: z.string() }),
  WorkerList: consolePage(worker),
  VendorList: consolePage(vendor),
  ModelRoutes: consolePage(model.extend({ fallbacks: z.array(z.string()), routes: z.array(modelRoute) })),
  QueueList: consolePage(queue),
} as const satisfies Record<string, z.ZodType>;

export type OwnObjectName = keyof typeof ownObjects;

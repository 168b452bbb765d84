import { z } from 'zod';
import { budgetPeriods } from '../../shared/accounts/account-money.ts';
import { capabilities } from '../../shared/capabilities/capability.ts';

const seconds = z.int().describe('Seconds since 1970.');
const ms = z.int().describe('Milliseconds since 1970.');
const dollars = z.number().describe('US dollars.');
const tokens = z.int().nullable();
const status = z.enum(['queued', 'in_progress', 'completed', 'failed', 'cancelled']);
const metadata = z.record(z.string(), z.string()).nullable().describe("The request's `metadata`.");

/** A page in OpenAI's format of lists. */
const page = <Item extends z.ZodType>(item: Item) =>
  z.object({
    object: z.literal('list'),
    data: z.array(item),
    first_id: z.string().nullable(),
    last_id: z.string().nullable().describe('What `after` takes for the next page.'),
    has_more: z.boolean(),
  });
/** A page in the format of the console and of operators. */
const consolePage = <Item extends z.ZodType>(item: Item) =>
  z.object({
    object: z.literal('list'),
    data: z.array(item),
    has_more: z.boolean(),
    next: z.string().nullable().describe('What `after` takes for the next page; null on the last one.'),
  });

const listedJob = z.object({
  id: z.string(),
  object: z.literal('job'),
  status,
  endpoint: z.string().describe('The endpoint that made it, such as `chat`.'),
  model: z.string(),
  created_at: seconds,
  started_at: seconds.nullable(),
  finished_at: seconds.nullable(),
  urls: z.object({ self: z.string(), events: z.string(), ws: z.string(), cancel: z.string() }),
  usage: z.unknown().describe("The vendor's usage, as it came."),
  input_tokens: tokens,
  output_tokens: tokens,
  cost: dollars.nullable(),
  vendor_cost: dollars.nullable().describe('What the vendor says that it cost there.'),
  error: z.object({ type: z.string(), code: z.string(), message: z.string() }).nullable(),
  metadata,
});
const job = listedJob.omit({ input_tokens: true, output_tokens: true, metadata: true }).extend({
  queue_position: z.int().nullable().describe('Jobs before this one in its queue; null if it does not wait.'),
  result: z.unknown().describe("The endpoint's own body, once the job has completed."),
});
const consoleJob = z.object({
  id: z.string(),
  object: z.literal('job'),
  status,
  account_id: z.string(),
  endpoint: z.string(),
  capability: z.string(),
  model: z.string(),
  served_model: z.string().nullable().describe('The fallback model that served it.'),
  vendor: z.string().nullable(),
  key: z.object({ id: z.string(), name: z.string().nullable() }),
  stream: z.boolean(),
  attempts: z.int(),
  created_at: ms,
  began_at: ms.nullable(),
  first_at: ms.nullable().describe('When the first piece of the answer came.'),
  ended_at: ms.nullable(),
  error_code: z.string().nullable(),
  error_message: z.string().nullable(),
  error_param: z.string().nullable(),
  vendor_status: z.int().nullable().describe('What the vendor answered, where it caused the error.'),
  input_tokens: tokens,
  output_tokens: tokens,
  cost: dollars.nullable(),
  vendor_cost: dollars.nullable(),
  usage: z.unknown(),
  metadata,
  has_body: z.boolean().describe('Whether its request and answer are kept.'),
});

const budget = z.object({ amount: dollars, period: z.enum(budgetPeriods), spent: dollars }).nullable();
const modelLimits = z.record(z.string(), z.object({ rpm: z.int().optional(), tpm: z.int().optional() })).nullable();
const texts = z.array(z.string()).nullable();
const limit = z.int().nullable().describe('Null: unlimited.');
const key = z.object({
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
  vendor_ids: texts,
});

const sums = z.object({
  requests: z.int(),
  failed: z.int(),
  cancelled: z.int(),
  input_tokens: z.int(),
  output_tokens: z.int(),
  cost: dollars,
  average_ms: z.int().nullable(),
  average_first_ms: z.int().nullable(),
});

const percentiles = z.object({ p50: ms, p95: ms, p99: ms }).nullable();

const account = z.object({
  id: z.string(),
  object: z.literal('account'),
  name: z.string(),
  is_unlimited: z.boolean(),
  suspended: z.boolean(),
  suspended_at: ms.nullable(),
  created_at: ms,
  credit: dollars,
  charged: dollars,
  balance: dollars.nullable().describe('Null: unlimited.'),
});
const credit = z.object({
  id: z.string(),
  object: z.literal('credit'),
  account: z.string(),
  amount: dollars,
  note: z.string(),
  created_at: ms,
  created_by: z.string(),
});
const user = z.object({
  id: z.string(),
  object: z.literal('user'),
  email: z.string(),
  name: z.string(),
  role: z.enum(['user', 'operator']),
  account_id: z.string(),
  disabled: z.boolean(),
  created_at: ms,
});

const route = z.object({
  route: z.string(),
  state: z.string(),
  failed_in_a_row: z.int(),
  last_error: z.object({ code: z.string(), status: z.int().nullable(), at: ms }).nullable(),
});
const worker = z.object({
  id: z.string(),
  host: z.string(),
  pid: z.int(),
  version: z.string(),
  region: z.string().nullable(),
  started_at: ms,
  seen_at: ms,
  capabilities: z.array(z.string()),
  running: z.record(z.string(), z.int()),
  concurrency: z.record(z.string(), z.int()),
  event_loop_lag_ms: z.number(),
  cpu: z.number(),
  memory: z.int().describe('Bytes.'),
  vendors: z.array(z.object({ vendor: z.string(), keys: z.int(), cooling_keys: z.int() })),
  routes: z.array(route),
});
const vendor = z.object({
  name: z.string(),
  on: z.boolean(),
  like: z.string().describe('The built-in vendor whose API it has.'),
  needs_key: z.boolean(),
  keys: z.int().describe('How many keys are set.'),
  base_url: z.string(),
  routes: z.array(z.object({ model: z.string(), route: z.string() })),
  workers: z.array(
    z.object({
      id: z.string(),
      host: z.string(),
      keys: z.int(),
      cooling_keys: z.int(),
      refused_keys: z.int(),
      key_state: z.enum(['key_refused', 'keys_cooling', 'healthy']),
      refusal: z
        .object({ status: z.int(), message: z.string().nullable(), at: ms })
        .nullable()
        .describe('What the vendor said of the key that it refused last.'),
      key_check: z.unknown().describe('What came of the check at the start of the worker; null where there was none.'),
      routes: z.array(route),
    }),
  ),
});

const prices = z.looseObject({}).nullable().describe('Dollars; of tokens for a million.');
const model = z.object({
  id: z.string(),
  owned_by: z.string(),
  capability: z.enum(capabilities),
  context_window: z.int().nullable(),
  max_output_tokens: z.int().nullable(),
  input: z.unknown(),
  output: z.unknown(),
  reasoning: z.unknown(),
  deprecated_at: ms.nullable(),
  prices,
  available: z.boolean(),
});
const consoleModel = model.extend({
  vendors: z.array(z.string()),
  paths: z.array(z.string()).describe('Where requests for it are sent.'),
  timestamps: z.boolean().nullable().describe('Of transcription: whether it tells the time of each part.'),
});
const modelRoute = z.object({
  route: z.string(),
  vendor: z.string(),
  model: z.string(),
  on: z.boolean(),
  order: z.number().nullable(),
  weight: z.number().nullable(),
  region: z.string().nullable(),
  prices,
});
const queue = z.object({
  capability: z.enum(capabilities),
  waiting: z.int(),
  prioritized: z.int(),
  active: z.int(),
  delayed: z.int(),
  oldest_wait_seconds: z.number(),
});

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
            cost: dollars,
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

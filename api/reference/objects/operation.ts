import { z } from 'zod';
import { capabilities } from '../../../shared/capabilities/capability.ts';
import { ms } from './shapes.ts';

const route = z.object({
  route: z.string(),
  state: z.string(),
  failed_in_a_row: z.int(),
  last_error: z.object({ code: z.string(), status: z.int().nullable(), at: ms }).nullable(),
});
/** A worker and what it does. */
export const worker = z.object({
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
/** A vendor, its credentials and models. */
export const vendor = z.object({
  name: z.string(),
  on: z.boolean(),
  like: z.string().describe('The built-in vendor whose API it has.'),
  needs_key: z.boolean(),
  settings: z
    .array(z.string())
    .describe('The environment variables that turn on the built-in vendor whose API it has.'),
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

/** Prices of a model. */
export const prices = z.looseObject({}).nullable().describe('Dollars; of tokens for a million.');
/** A model that is offered. */
export const model = z.object({
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
/** A model in the console's list. */
export const consoleModel = model.extend({
  vendors: z.array(z.string()),
  paths: z.array(z.string()).describe('Where requests for it are sent.'),
  timestamps: z.boolean().nullable().describe('Of transcription: whether it tells the time of each part.'),
});
/** A route of a model. */
export const modelRoute = z.object({
  route: z.string(),
  vendor: z.string(),
  model: z.string(),
  on: z.boolean(),
  order: z.number().nullable(),
  weight: z.number().nullable(),
  region: z.string().nullable(),
  prices,
});
/** A queue and its depth. */
export const queue = z.object({
  capability: z.enum(capabilities),
  waiting: z.int(),
  prioritized: z.int(),
  active: z.int(),
  delayed: z.int(),
  oldest_wait_seconds: z.number(),
});

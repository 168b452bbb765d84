import { z } from 'zod';
import { dollars, metadata, ms, seconds, status, tokens } from './shapes.ts';

const serviceTier = z
  .string()
  .nullable()
  .describe(
    'The service tier that served it, if it was asked for or its vendor has used another than the standard one.',
  );

/** A job in a list. */
export const listedJob = z.object({
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
  service_tier: serviceTier,
  input_tokens: tokens,
  output_tokens: tokens,
  cost: dollars.nullable(),
  vendor_cost: dollars.nullable().describe('What the vendor says that it cost there.'),
  error: z.object({ type: z.string(), code: z.string(), message: z.string() }).nullable(),
  metadata,
});
/** A job by itself. */
export const job = listedJob.omit({ input_tokens: true, output_tokens: true, metadata: true }).extend({
  queue_position: z.int().nullable().describe('Jobs before this one in its queue; null if it does not wait.'),
  expected_wait_seconds: z
    .number()
    .nullable()
    .describe('Until a worker begins it, as the queue drains now; null if it does not wait, or if that is not known.'),
  result: z.unknown().describe("The endpoint's own body, once the job has completed."),
});
/** The answer to `Prefer: quote`. */
export const quote = z.object({
  object: z.literal('quote'),
  endpoint: z.string(),
  model: z.string(),
  routes: z
    .array(z.object({ vendor: z.string(), model: z.string() }))
    .describe('The vendors that may serve it, in the order in which they are tried; another model is a fallback.'),
  max_cost: dollars.nullable().describe('What it may cost at most; null if it has no price.'),
  max_output_tokens: tokens.describe('Output tokens of each choice that `max_cost` includes.'),
  expected_wait_seconds: z.number().nullable().describe('Until a worker would begin it; null if that is not known.'),
});
/** A job as the console shows it. */
export const consoleJob = z.object({
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
  service_tier: serviceTier,
  metadata,
  has_body: z.boolean().describe('Whether its request and answer are kept.'),
});

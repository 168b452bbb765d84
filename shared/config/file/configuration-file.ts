import { z } from 'zod';
import { capabilities } from '../../capabilities/capability.ts';
import { speechFormats } from '../../capabilities/speech.ts';
import { modalities } from '../../catalogue/modalities.ts';
import { vendorRows } from '../../vendors/vendors.ts';
import { isPlainAddress, plainAddress } from '../vendor-settings.ts';
import { limitBounds } from './limit-bounds.ts';
import { pricesShape } from './prices-shape.ts';
import { camelKeys, flag, list, mapping, named, number, oneOf, pattern, text, whole } from './shapes.ts';

const baseUrl = z
  .url({ protocol: /^https?$/, error: 'expected a URL of http or https' })
  .refine(isPlainAddress, `expected ${plainAddress}`)
  .transform((url) => url.replace(/\/+$/, ''));

/** Other gateways read a star as a pattern: here it would be the name of a model that nobody asks for. */
const modelId = text('the id of a model, up to 256 characters', 256).refine(
  (id) => !id.includes('*'),
  'expected the id of one model, without a star: a vendor with open: true offers all of its models',
);

/** Limits of what a vendor is asked, by LiteLLM's names. */
const capacity = {
  rpm: whole(1, 1_000_000_000).optional(),
  tpm: whole(1, 1_000_000_000_000).optional(),
  max_parallel_requests: whole(1, 1_000_000).optional(),
};
const capacityLimits = () => mapping(capacity).transform(camelKeys);

const vendor = mapping({
  /** The table row whose wire format it uses. Left out: the row of its own name, else OpenAI's. */
  like: oneOf(vendorRows.map(({ name }) => name)).optional(),
  base_url: baseUrl.optional(),
  api_key: text().optional(),
  api_keys: list(text(), 'texts').optional(),
  open: flag().optional(),
  /** Items not billed in addition to model prices: fields, types of tools, `service_tier.flex`. */
  unbilled: list(text(), 'names of fields, tools or tiers').optional(),
  /** `false` turns the vendor off, whatever the environment says. */
  enabled: flag().optional(),
  /** Of the vendor: all of its keys and models together. */
  ...capacity,
  /** Of each of its keys. */
  key_limits: capacityLimits().optional(),
  /** Of each of its keys for a model, by the vendor's name of the model. */
  model_limits: named(modelId, capacityLimits()).optional(),
}).transform(camelKeys);

/** Properties of a model that a route may override. */
const facts = {
  context_window: whole(1, 1_000_000_000).optional(),
  max_output_tokens: whole(1, 1_000_000_000).optional(),
  prices: pricesShape.optional(),
};

const milliseconds = () => number(0.001, 86_400).transform((seconds) => Math.round(seconds * 1000));

const route = mapping({
  vendor: text('the name of a vendor'),
  model: text("the vendor's name of the model"),
  ...facts,
  order: whole(0, 1000).optional(),
  weight: z
    .number('expected a number > 0')
    .positive('expected a number > 0')
    .max(1_000_000, 'expected at most 1000000')
    .optional(),
  region: text().optional(),
  first_byte_seconds: milliseconds().optional(),
  idle_seconds: milliseconds().optional(),
}).transform(camelKeys);

const timeText = 'expected a day (2026-11-21) or whole seconds since 1970';

/** Whether these are seconds since 1970 of our days, or of no day: a year and `20261121` are not, nor are milliseconds. */
const areSeconds = (time: number): boolean => time === 0 || (time >= 100_000_000 && time <= 100_000_000_000);

/** A day, or seconds since 1970; converted to the latter. */
const time = z.union(
  [
    z.int(timeText).refine(areSeconds, timeText),
    z.iso.date().transform((day) => Date.parse(`${day}T00:00:00Z`) / 1000),
  ],
  timeText,
);

const imageSize = pattern(/^\d+x\d+$|^auto$/, 'a size such as 1024x1024, or auto');
const videoSize = pattern(/^\d+x\d+$/, 'a size such as 1280x720');
const seconds = whole(1, 86_400).transform(String);

/** Traits of models of some capabilities; shared/catalogue/model.ts has the same under other names. */
const traits = {
  chat: mapping({ hints: flag().optional(), effort: flag().optional() }).transform(camelKeys).optional(),
  legacy_completions: flag().optional(),
  responses: flag().optional(),
  embedding: mapping({
    dimensions: flag().optional(),
    batch: whole(1, 1_000_000).optional(),
    batch_tokens: whole(1, 1_000_000_000).optional(),
  })
    .transform(camelKeys)
    .optional(),
  image: mapping({
    tasks: list(oneOf(['generation', 'edit', 'variation']), 'tasks').optional(),
    sizes: list(imageSize, 'sizes').optional(),
    most: whole(1, 10).optional(),
    partial: flag().optional(),
    response_format: flag().optional(),
  })
    .transform(camelKeys)
    .optional(),
  transcription: mapping({
    timestamps: flag().optional(),
    translates: flag().optional(),
    streams: flag().optional(),
    diarizes: flag().optional(),
  })
    .transform(camelKeys)
    .optional(),
  speech: mapping({
    formats: list(oneOf(speechFormats), 'formats').optional(),
    events: flag().optional(),
  })
    .transform(camelKeys)
    .optional(),
  video: mapping({
    sizes: list(videoSize, 'sizes').optional(),
    seconds: list(seconds, 'whole seconds').optional(),
    input: flag().optional(),
    remix: flag().optional(),
  })
    .transform(camelKeys)
    .optional(),
};

const model = mapping({
  /** Removes it from the list: callers cannot request it. */
  hide: z.literal(true, 'expected true, or nothing').optional(),
  rename: modelId.optional(),
  /** Makes this id an alias of that model. */
  alias_of: modelId.optional(),
  capability: oneOf(capabilities).optional(),
  owned_by: pattern(/^[a-z0-9-]+$/, 'lower-case letters, digits and hyphens').optional(),
  input: list(oneOf(modalities), 'kinds of content').optional(),
  output: list(oneOf(modalities), 'kinds of content').optional(),
  reasoning: flag().optional(),
  created: time.optional(),
  deprecated_at: time.optional(),
  ...facts,
  ...traits,
  /** Replaces all existing routes. */
  routes: list(route, 'routes').optional(),
  fallbacks: list(modelId, 'ids of models', 0).optional(),
}).transform(camelKeys);

const routing = mapping({
  attempts: whole(1, 20).optional(),
  retry_budget_percent: number(0, 100).optional(),
  longest_retry_after_seconds: number(0, 3600).optional(),
  breaker: mapping({
    threshold_percent: number(1, 100).optional(),
    calls: whole(1, 10_000).optional(),
    pause_seconds: number(0.001, 3600).optional(),
  })
    .transform(camelKeys)
    .optional(),
}).transform(camelKeys);

const limit = ([min, max]: readonly [number, number]) => whole(min, max).optional();

const limits = mapping({
  queue_limit: limit(limitBounds.queue_limit),
  queue_wait_seconds: limit(limitBounds.queue_wait_seconds),
  key_concurrency: limit(limitBounds.key_concurrency),
  deadline_seconds: limit(limitBounds.deadline_seconds),
  background_deadline_seconds: limit(limitBounds.background_deadline_seconds),
  vendor_silence_seconds: limit(limitBounds.vendor_silence_seconds),
});

/** The whole file. A section is null if all its entries are commented out. */
export const configurationFile = mapping({
  vendors: named(pattern(/^[a-z0-9][a-z0-9-]{0,63}$/, 'a name of lower-case letters, digits and hyphens'), vendor)
    .nullish()
    .transform((given) => given ?? {}),
  models: named(modelId, model)
    .nullish()
    .transform((given) => given ?? {}),
  routing: routing.nullish().transform((given) => given ?? {}),
  limits: limits.nullish().transform((given) => given ?? {}),
});

/** The configuration file (`SLUICE_CONFIG`) in the units of the code: nano-dollars, milliseconds of routes. */
export type ConfigurationFile = z.infer<typeof configurationFile>;
export type VendorEntry = ConfigurationFile['vendors'][string];
export type ModelEntry = ConfigurationFile['models'][string];
export type RouteEntry = NonNullable<ModelEntry['routes']>[number];

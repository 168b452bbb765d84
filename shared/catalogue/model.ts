import { z } from 'zod';
import { capabilities } from '../capabilities/capability.ts';
import { speechFormats } from '../capabilities/speech.ts';
import { modalities } from './modalities.ts';

const tokens = z.int().min(1);
/** Nano-dollars. */
const money = z.int().min(0);

/** Token prices, in whole nano-dollars per thousand: a single one often costs less than a nano-dollar. */
const tokenPrices = {
  input: money.optional(),
  /** Input read from the vendor's cache. */
  cachedInput: money.optional(),
  /** Input written to the vendor's cache, if that costs more. */
  cacheWrite: money.optional(),
  output: money.optional(),
};

/** All prices of tokens. */
const allTokenPrices = {
  ...tokenPrices,
  /** Prices of the whole request if its input is longer than `tokens`; in ascending order. */
  above: z
    .array(z.strictObject({ tokens, ...tokenPrices }))
    .min(1)
    .optional(),
  /** Image tokens in the answer, if priced separately. */
  imageOutput: money.optional(),
  /** Audio tokens in the request, if priced separately. */
  audioInput: money.optional(),
  /** Image tokens in the request, if priced separately. */
  imageInput: money.optional(),
};

const prices = z.strictObject({
  ...allTokenPrices,
  /** Nano-dollars per image. */
  image: money.optional(),
  /** The same for images with a different price, by size (`1792x1024`), quality (`hd`), or both (`1792x1024 hd`). */
  imageKinds: z.record(z.string(), money).optional(),
  /** Nano-dollars per second of audio or video. */
  second: money.optional(),
  /** Nano-dollars per character of text. */
  character: money.optional(),
  /** Additional nano-dollars per request, the same for each or by the size of its search context. */
  request: z.union([money, z.strictObject({ low: money, medium: money, high: money })]).optional(),
  /**
   * Prices at other service tiers than the vendor's standard one, by the tier's name: all prices times a number, or the prices of
   * tokens there. See `pricesAt`.
   */
  tiers: z.record(z.string(), z.union([z.number().positive(), z.strictObject(allTokenPrices)])).optional(),
});

/** Properties of a model that a route may override. */
const facts = {
  /** Tokens of input and output together; absent if the vendor does not publish it. */
  contextWindow: tokens.optional(),
  maxOutputTokens: tokens.optional(),
  /** Absent if no source lists them. */
  prices: prices.optional(),
};

/** A vendor that serves the model, and its name there. The row's facts are the first route's. */
const route = z.strictObject({
  vendor: z.string().min(1),
  model: z.string().min(1),
  ...facts,
  /** Routes of the lowest order are tried first, those of the same order by weight. Absent: its index in the list. */
  order: z.int().min(0).optional(),
  /** Its share among the routes of its order; absent: 1. */
  weight: z.number().positive().optional(),
  /** Its region: among the routes of an order, workers prefer those of their own (`SLUICE_REGION`). */
  region: z.string().min(1).optional(),
  /** Timeout for a streamed answer's first byte, in ms; absent: as for any silence. */
  firstByteMs: z.int().min(1).optional(),
  /** Timeout for silence before or inside its answer, in ms; absent: `SLUICE_VENDOR_SILENCE_SECONDS`. */
  idleMs: z.int().min(1).optional(),
});

const modelRow = z.strictObject({
  /** The id callers use; may contain slashes. */
  id: z.string().min(1).max(256),
  /** Release, seconds since 1970. If no source lists it: the day of the list that names the model, which is not older than the model. */
  created: z.int().min(0),
  /** Its maker; lower case. */
  ownedBy: z.string().regex(/^[a-z0-9-]+$/),
  capability: z.enum(capabilities),
  /** The vendors that serve it, preferred first, with their names of the model. */
  routes: z.array(route).min(1),
  /** The id of the model that this one is an alias of; set by the configuration file. */
  aliasOf: z.string().min(1).optional(),
  /** Ids of fallback models, in order, used when all its routes have failed. Fallbacks of fallbacks are not used. */
  fallbacks: z.array(z.string().min(1)).optional(),
  /** Kinds of content in a request; absent if unknown. */
  input: z.array(z.enum(modalities)).min(1).optional(),
  /** Kinds of content in an answer. */
  output: z.array(z.enum(modalities)).min(1).optional(),
  /** Chat: whether it reasons before it answers; absent if unknown. */
  reasoning: z.boolean().optional(),
  /** The day its vendor shuts it down, seconds since 1970; absent if not announced. */
  deprecatedAt: z.int().min(0).optional(),
  /** The id of the model that its vendor recommends instead. */
  replacement: z.string().min(1).optional(),
  /** The vendor of its first route had shut it down when the catalogue was made: only others serve it, unless the configuration file describes it. */
  retired: z.literal(true).optional(),
  ...facts,
  /** Chat: the vendor has only the legacy completions for it. */
  legacyCompletions: z.boolean().optional(),
  /** Chat: the vendor supports the Responses API for it; elsewhere a chat is used. */
  responses: z.boolean().optional(),
  /** Fields of other APIs' requests that a chat with it may contain; absent: all. */
  chat: z
    .strictObject({
      /** Whether the vendor accepts, or ignores, fields missing from OpenAI's reference (`cache_control`). */
      hints: z.boolean(),
      /** Whether it accepts `reasoning_effort`. */
      effort: z.boolean(),
    })
    .optional(),
  embedding: z
    .strictObject({
      /** Whether the caller may choose the number of dimensions. */
      dimensions: z.boolean(),
      /** Maximum number of inputs per call. */
      batch: z.int().min(1),
      /** Maximum number of tokens per call, over all inputs; absent if unknown. */
      batchTokens: tokens.optional(),
    })
    .optional(),
  image: z
    .strictObject({
      tasks: z.array(z.enum(['generation', 'edit', 'variation'])).min(1),
      /** Allowed sizes; absent if the vendor accepts others too, or they are unknown. */
      sizes: z.array(z.string().regex(/^\d+x\d+$|^auto$/)).optional(),
      /** Images per request, at most 10. */
      most: z.int().min(1).max(10),
      /** Whether it sends partial images while it works. */
      partial: z.boolean(),
      /** Whether the vendor accepts `response_format`, and returns links by default; the others always return base64. */
      responseFormat: z.boolean(),
    })
    .optional(),
  transcription: z
    .strictObject({
      /** Whether it returns timestamps of segments and words, which srt, vtt and verbose_json need. */
      timestamps: z.boolean(),
      /** Whether it translates into English. */
      translates: z.boolean(),
      /** Whether it streams its text. */
      streams: z.boolean(),
      /** Whether it identifies speakers, which diarized_json needs. */
      diarizes: z.boolean(),
    })
    .optional(),
  video: z
    .strictObject({
      /** Allowed sizes, the default first. */
      sizes: z.array(z.string().regex(/^\d+x\d+$/)).min(1),
      /** Allowed lengths, the default first. */
      seconds: z.array(z.string().regex(/^\d+$/)).min(1),
      /** Whether it can start from a picture; `links`: only from a link to one; `always`: it requires a picture. */
      input: z.union([z.boolean(), z.enum(['links', 'always'])]),
      /** Whether a finished video can be remixed with another prompt. */
      remix: z.boolean(),
    })
    .optional(),
  speech: z
    .strictObject({
      formats: z.array(z.enum(speechFormats)).min(1),
      /** Whether the vendor sends audio as events, which report the usage; absent if unknown. */
      events: z.boolean().optional(),
    })
    .optional(),
});

/** One row of the catalogue. */
export type Model = Readonly<z.infer<typeof modelRow>>;

/** One route of a model. */
export type ModelRoute = Readonly<z.infer<typeof route>>;

/** Traits of models of some capabilities. */
export type Traits = Pick<
  Model,
  'chat' | 'embedding' | 'image' | 'transcription' | 'speech' | 'video' | 'legacyCompletions' | 'responses'
>;

/** The catalogue's generated file (models.json). */
export const catalogueFile = z.strictObject({
  /** When it was generated, ISO 8601. */
  generated_at: z.iso.datetime(),
  /** Versions of its sources, by name. */
  sources: z.record(z.string(), z.string()),
  models: z.array(modelRow),
});

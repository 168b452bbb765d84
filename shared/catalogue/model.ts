import { z } from 'zod';
import { capabilities } from '../capabilities/capability.ts';
import { speechFormats } from '../capabilities/speech.ts';

const tokens = z.int().min(1);
/** Nano-dollars. */
const money = z.int().min(0);

/** Kinds of content. `file` is a document, such as a PDF. */
export const modalities = ['text', 'image', 'audio', 'video', 'file', 'vector'] as const;

/** Prices of tokens, in whole nano-dollars for a thousand: a single one often costs less than a nano-dollar. */
const tokenPrices = {
  input: money.optional(),
  /** Input that the vendor had in its cache. */
  cachedInput: money.optional(),
  /** Input that the vendor puts into its cache, where that costs more. */
  cacheWrite: money.optional(),
  output: money.optional(),
};

const prices = z.strictObject({
  ...tokenPrices,
  /** Prices of the whole request once its input is longer than so many tokens; by rising length. */
  above: z
    .array(z.strictObject({ tokens, ...tokenPrices }))
    .min(1)
    .optional(),
  /** Tokens of images in the answer, where they have a price of their own. */
  imageOutput: money.optional(),
  /** Tokens of audio in the request, where they have a price of their own. */
  audioInput: money.optional(),
  /** Nano-dollars for one image. */
  image: money.optional(),
  /** The same for images that cost otherwise, by size (`1792x1024`), quality (`hd`), or both (`1792x1024 hd`). */
  imageKinds: z.record(z.string(), money).optional(),
  /** Nano-dollars for one second of audio or video. */
  second: money.optional(),
  /** Nano-dollars for one character of text. */
  character: money.optional(),
  /** Nano-dollars for one request beside all that, the same for each or by the size of its search context. */
  request: z.union([money, z.strictObject({ low: money, medium: money, high: money })]).optional(),
});

/** What a model has, and a route of it may have otherwise. */
const facts = {
  /** Tokens of input and output together; absent where the vendor does not say. */
  contextWindow: tokens.optional(),
  maxOutputTokens: tokens.optional(),
  /** Absent where no source tells them. */
  prices: prices.optional(),
};

/** A vendor that serves the model, and what it is called there. The row's facts are the first route's. */
const route = z.strictObject({
  vendor: z.string().min(1),
  model: z.string().min(1),
  ...facts,
  /** Routes of the lowest order are tried first, those of the same one by weight. Absent: its place in the list. */
  order: z.int().min(0).optional(),
  /** Its share among the routes of its order; absent: 1. */
  weight: z.number().positive().optional(),
  /** Where it is: workers prefer those of their own region (`SLUICE_REGION`) among the routes of an order. */
  region: z.string().min(1).optional(),
  /** How long a streamed answer's first byte may take, in ms; absent: as long as any silence. */
  firstByteMs: z.int().min(1).optional(),
  /** How long it may be silent, before or inside its answer, in ms; absent: `SLUICE_VENDOR_SILENCE_SECONDS`. */
  idleMs: z.int().min(1).optional(),
});

const modelRow = z.strictObject({
  /** What callers name it; may hold slashes. */
  id: z.string().min(1).max(256),
  /** Release, seconds since 1970. Where no source tells it: the day of the list that names the model; it is not younger. */
  created: z.int().min(0),
  /** Who made it; lower case. */
  ownedBy: z.string().regex(/^[a-z0-9-]+$/),
  capability: z.enum(capabilities),
  /** Who serves it, the preferred first, and what the model is called there. */
  routes: z.array(route).min(1),
  /** The id of the model that this one is another name of; the configuration file makes such. */
  aliasOf: z.string().min(1).optional(),
  /** Ids of models that stand in when all its routes have failed, in this order. Theirs are not asked in turn. */
  fallbacks: z.array(z.string().min(1)).optional(),
  /** What a request may hold; absent where nobody has said. */
  input: z.array(z.enum(modalities)).min(1).optional(),
  /** What an answer may hold. */
  output: z.array(z.enum(modalities)).min(1).optional(),
  /** Chat: whether it reasons before it answers; absent where nobody has said. */
  reasoning: z.boolean().optional(),
  /** The day its vendor shuts it down, seconds since 1970; absent where none is set. */
  deprecatedAt: z.int().min(0).optional(),
  ...facts,
  /** Chat: the vendor has only the legacy completions for it. */
  legacyCompletions: z.boolean().optional(),
  /** Chat: the vendor has the Responses API for it; elsewhere a chat stands in. */
  responses: z.boolean().optional(),
  /** What of other APIs' requests a chat with it may hold; absent: all of it. */
  chat: z
    .strictObject({
      /** Whether the vendor takes, or passes over, fields that OpenAI's document does not have (`cache_control`). */
      hints: z.boolean(),
      /** Whether it takes `reasoning_effort`. */
      effort: z.boolean(),
    })
    .optional(),
  embedding: z
    .strictObject({
      /** Whether the caller may choose the number of dimensions. */
      dimensions: z.boolean(),
      /** Inputs the vendor takes in one call. */
      batch: z.int().min(1),
      /** Tokens the vendor takes in one call, all its inputs together; absent where it does not say. */
      batchTokens: tokens.optional(),
    })
    .optional(),
  image: z
    .strictObject({
      tasks: z.array(z.enum(['generation', 'edit', 'variation'])).min(1),
      /** Allowed sizes; absent where the vendor takes others too, or does not say. */
      sizes: z.array(z.string().regex(/^\d+x\d+$|^auto$/)).optional(),
      /** Images per request, at most 10. */
      most: z.int().min(1).max(10),
      /** Whether it shows partial images while it works. */
      partial: z.boolean(),
      /** Whether the vendor takes `response_format`, and answers links by default; the others always answer base64. */
      responseFormat: z.boolean(),
    })
    .optional(),
  transcription: z
    .strictObject({
      /** Whether it times segments and words: what srt, vtt and verbose_json are made of. */
      timestamps: z.boolean(),
      /** Whether it translates into English. */
      translates: z.boolean(),
      /** Whether it says its text as it goes. */
      streams: z.boolean(),
      /** Whether it tells speakers apart: what diarized_json is made of. */
      diarizes: z.boolean(),
    })
    .optional(),
  video: z
    .strictObject({
      /** Allowed sizes, the usual one first. */
      sizes: z.array(z.string().regex(/^\d+x\d+$/)).min(1),
      /** Allowed lengths, the usual one first. */
      seconds: z.array(z.string().regex(/^\d+$/)).min(1),
      /** Whether it can begin with a picture; `links`: with a link to one alone; `always`: it makes videos of pictures only. */
      input: z.union([z.boolean(), z.enum(['links', 'always'])]),
      /** Whether a finished video can be made anew by another prompt. */
      remix: z.boolean(),
    })
    .optional(),
  speech: z
    .strictObject({
      formats: z.array(z.enum(speechFormats)).min(1),
      /** Whether the vendor sends audio as events, which tell the usage; absent where nobody has said. */
      events: z.boolean().optional(),
    })
    .optional(),
});

/** One row of the catalogue. */
export type Model = Readonly<z.infer<typeof modelRow>>;

/** One route of a model. */
export type ModelRoute = Readonly<z.infer<typeof route>>;

/** What only models of some capabilities have. */
export type Traits = Pick<
  Model,
  'chat' | 'embedding' | 'image' | 'transcription' | 'speech' | 'video' | 'legacyCompletions' | 'responses'
>;

/** The generated file of the catalogue (models.json). Compiled: every process that starts reads it. */
export const catalogueFile = z.compile(
  z.strictObject({
    /** When it was made, ISO 8601. */
    generated_at: z.iso.datetime(),
    /** Versions of what it was made from, by name. */
    sources: z.record(z.string(), z.string()),
    models: z.array(modelRow),
  }),
);

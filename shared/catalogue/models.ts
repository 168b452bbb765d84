import { z } from 'zod';
import { type Capability, capabilities } from '../capabilities/capability.ts';
import { speechFormats } from '../capabilities/speech.ts';

const tokens = z.int().min(1);

const model = z.strictObject({
  /** What callers name it; may hold slashes. */
  id: z.string().min(1).max(256),
  /** Release, seconds since 1970. */
  created: z.int().min(0),
  ownedBy: z.string().regex(/^[a-z0-9-]+$/),
  capability: z.enum(capabilities),
  /** Who serves it, the preferred first, and what the model is called there. */
  routes: z.array(z.strictObject({ vendor: z.string().min(1), model: z.string().min(1) })).min(1),
  /** Tokens of input and output together; absent where the vendor does not say. */
  contextWindow: tokens.optional(),
  maxOutputTokens: tokens.optional(),
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
      /** Whether it can begin with a picture. */
      input: z.boolean(),
      /** Whether a finished video can be made anew by another prompt. */
      remix: z.boolean(),
    })
    .optional(),
  speech: z
    .strictObject({
      formats: z.array(z.enum(speechFormats)).min(1),
      /** Whether the vendor sends audio as events, which tell the usage. */
      events: z.boolean(),
    })
    .optional(),
});

/** One row of the catalogue. */
export type Model = Readonly<z.infer<typeof model>>;

type Traits = Pick<
  Model,
  'chat' | 'embedding' | 'image' | 'transcription' | 'speech' | 'video' | 'legacyCompletions' | 'responses'
>;
type Limits = readonly [contextWindow: number, maxOutputTokens: number];

const million: Limits = [1_050_000, 128_000];
const fifth: Limits = [400_000, 128_000];
const longFourth: Limits = [1_047_576, 32_768];
const omni: Limits = [128_000, 16_384];
const reasoning: Limits = [200_000, 100_000];

const openaiEmbedding = (dimensions: boolean): Traits => ({
  embedding: { dimensions, batch: 2048, batchTokens: 300_000 },
});
const imageSizes = ['1024x1024', '1536x1024', '1024x1536', 'auto'];
const anySize = {
  tasks: ['generation', 'edit'],
  most: 10,
  partial: true,
  responseFormat: false,
} satisfies Model['image'];
const gptImage2: Traits = { image: anySize };
const gptImage: Traits = { image: { ...anySize, sizes: imageSizes } };
const streamingText = { timestamps: false, translates: false, streams: true, diarizes: false };
const speech = (events: boolean): Traits => ({
  speech: { formats: speechFormats, events },
});

/** A model of OpenAI; `released` is its day of release. Its capability is what its traits are of, else chat. */
function openai(id: string, released: string, limits?: Limits, traits: Traits = {}): Model {
  return {
    id,
    created: Date.parse(`${released}T00:00:00Z`) / 1000,
    ownedBy: 'openai',
    capability: capabilityOf(traits),
    routes: [{ vendor: 'openai', model: id }],
    ...(limits && { contextWindow: limits[0], maxOutputTokens: limits[1] }),
    // All its chat models have the Responses API, but for those of the legacy completions.
    ...(capabilityOf(traits) === 'chat' && !traits.legacyCompletions && { responses: true }),
    // It refuses what it does not know. The fourth generation does not reason.
    ...(capabilityOf(traits) === 'chat' && {
      chat: { hints: false, effort: limits !== omni && limits !== longFourth },
    }),
    ...traits,
  };
}

const video = (...sizes: string[]): Traits => ({
  video: { sizes, seconds: ['4', '8', '12'], input: true, remix: true },
});

/** A model of the sandbox vendor. */
function sandbox(id: string, traits: Traits = {}): Model {
  return {
    id,
    created: Date.parse('2025-01-01T00:00:00Z') / 1000,
    ownedBy: 'sandbox',
    capability: capabilityOf(traits),
    routes: [{ vendor: 'sandbox', model: id }],
    ...traits,
  };
}

function capabilityOf(traits: Traits): Capability {
  return capabilities.find((capability) => Object.hasOwn(traits, capability)) ?? 'chat';
}

/**
 * Every model the gateway knows. Of OpenAI's: those for chat completions that its current client names (`ChatModel`), and
 * those for legacy completions, embeddings, images, transcription and speech. Left out are models for search only, those for its Responses API only, and those it has shut down.
 */
export const models: readonly Model[] = z.array(model).parse([
  openai('gpt-5.6-sol', '2026-06-26'),
  openai('gpt-5.6-terra', '2026-06-26'),
  openai('gpt-5.6-luna', '2026-06-26'),
  openai('gpt-5.5', '2026-04-23', million),
  openai('gpt-5.5-2026-04-23', '2026-04-23', million),
  openai('gpt-5.4', '2026-03-05', million),
  openai('gpt-5.4-mini', '2026-03-17', fifth),
  openai('gpt-5.4-mini-2026-03-17', '2026-03-17', fifth),
  openai('gpt-5.4-nano', '2026-03-17', fifth),
  openai('gpt-5.4-nano-2026-03-17', '2026-03-17', fifth),
  openai('gpt-5.2', '2025-12-11', fifth),
  openai('gpt-5.2-2025-12-11', '2025-12-11', fifth),
  openai('gpt-5.1', '2025-11-13', fifth),
  openai('gpt-5.1-2025-11-13', '2025-11-13', fifth),
  openai('gpt-5', '2025-08-07', fifth),
  openai('gpt-5-2025-08-07', '2025-08-07', fifth),
  openai('gpt-5-mini', '2025-08-07', fifth),
  openai('gpt-5-mini-2025-08-07', '2025-08-07', fifth),
  openai('gpt-5-nano', '2025-08-07', fifth),
  openai('gpt-5-nano-2025-08-07', '2025-08-07', fifth),
  openai('gpt-4.1', '2025-04-14', longFourth),
  openai('gpt-4.1-2025-04-14', '2025-04-14', longFourth),
  openai('gpt-4.1-mini', '2025-04-14', longFourth),
  openai('gpt-4.1-mini-2025-04-14', '2025-04-14', longFourth),
  openai('o3', '2025-04-16', reasoning),
  openai('o3-2025-04-16', '2025-04-16', reasoning),
  openai('gpt-4o', '2024-05-13', omni),
  openai('gpt-4o-2024-11-20', '2024-11-20', omni),
  openai('gpt-4o-2024-08-06', '2024-08-06', omni),
  openai('gpt-4o-mini', '2024-07-18', omni),
  openai('gpt-4o-mini-2024-07-18', '2024-07-18', omni),
  openai('gpt-3.5-turbo-instruct', '2023-08-24', [4096, 4096], { legacyCompletions: true }),
  openai('davinci-002', '2023-08-21', [16_384, 16_384], { legacyCompletions: true }),
  openai('babbage-002', '2023-08-21', [16_384, 16_384], { legacyCompletions: true }),
  openai('text-embedding-3-large', '2024-01-22', [8192, 8192], openaiEmbedding(true)),
  openai('text-embedding-3-small', '2024-01-22', [8192, 8192], openaiEmbedding(true)),
  openai('text-embedding-ada-002', '2022-12-16', [8192, 8192], openaiEmbedding(false)),
  openai('gpt-image-2', '2026-04-21', undefined, gptImage2),
  openai('gpt-image-2-2026-04-21', '2026-04-21', undefined, gptImage2),
  openai('gpt-image-1.5', '2025-11-25', undefined, gptImage),
  openai('gpt-image-1', '2025-04-24', undefined, gptImage),
  openai('gpt-image-1-mini', '2025-10-06', undefined, gptImage),
  openai('chatgpt-image-latest', '2025-12-13', undefined, gptImage),
  openai('dall-e-3', '2023-10-31', undefined, {
    image: {
      tasks: ['generation'],
      sizes: ['1024x1024', '1792x1024', '1024x1792'],
      most: 1,
      partial: false,
      responseFormat: true,
    },
  }),
  openai('dall-e-2', '2022-11-03', undefined, {
    image: {
      tasks: ['generation', 'edit', 'variation'],
      sizes: ['256x256', '512x512', '1024x1024'],
      most: 10,
      partial: false,
      responseFormat: true,
    },
  }),
  openai('whisper-1', '2023-02-27', undefined, {
    transcription: { timestamps: true, translates: true, streams: false, diarizes: false },
  }),
  openai('gpt-4o-transcribe', '2025-03-15', undefined, { transcription: streamingText }),
  openai('gpt-4o-mini-transcribe', '2025-03-15', undefined, { transcription: streamingText }),
  openai('gpt-4o-mini-transcribe-2025-12-15', '2025-12-15', undefined, { transcription: streamingText }),
  openai('gpt-4o-transcribe-diarize', '2025-10-15', undefined, { transcription: { ...streamingText, diarizes: true } }),
  openai('tts-1', '2023-04-19', undefined, speech(false)),
  openai('tts-1-hd', '2023-11-03', undefined, speech(false)),
  openai('gpt-4o-mini-tts', '2025-03-19', undefined, speech(true)),
  openai('gpt-4o-mini-tts-2025-12-15', '2025-12-15', undefined, speech(true)),
  sandbox('sandbox-chat'),
  sandbox('sandbox-reasoning'),
  sandbox('sandbox-responses', { responses: true }),
  sandbox('sandbox-instruct', { legacyCompletions: true }),
  sandbox('sandbox-embedding', { embedding: { dimensions: true, batch: 64 } }),
  sandbox('sandbox-image', {
    image: {
      tasks: ['generation', 'edit', 'variation'],
      sizes: ['256x256', '512x512', '1024x1024', '1536x1024', '1024x1536', '1792x1024', '1024x1792', 'auto'],
      most: 10,
      partial: true,
      responseFormat: true,
    },
  }),
  sandbox('sandbox-transcribe', {
    transcription: { timestamps: true, translates: true, streams: true, diarizes: false },
  }),
  sandbox('sandbox-speech', { speech: { formats: ['mp3', 'flac', 'wav', 'pcm'], events: true } }),
  sandbox('sandbox-video', video('1280x720', '1792x1024')),
  sandbox('sandbox-video-portrait', video('720x1280', '1024x1792')),
]);

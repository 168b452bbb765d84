import { speechFormats } from '../shared/capabilities/speech.ts';
import { capabilityOf } from '../shared/catalogue/capability-of.ts';
import type { Model, Traits } from '../shared/catalogue/model.ts';
import { seconds } from './chat-models.ts';
import { type PiAiModel, piAiDate, readPiAi } from './pi-ai.ts';
import { nano, pricesOfGenai, pricesOfPiAi } from './prices.ts';
import { tiersOf } from './tier-prices.ts';

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

/** Prices missing from all packages: https://github.com/Portkey-AI/models at f654307, 2026-08-21. */
const documentedPrices: Readonly<Record<string, Model['prices']>> = {
  'dall-e-3': {
    image: nano(0.04),
    imageKinds: {
      ...{ '1792x1024': nano(0.08), '1024x1792': nano(0.08), hd: nano(0.08) },
      ...{ '1792x1024 hd': nano(0.12), '1024x1792 hd': nano(0.12) },
    },
  },
  'dall-e-2': { image: nano(0.02), imageKinds: { '256x256': nano(0.016), '512x512': nano(0.018) } },
  'tts-1': { character: nano(0.000015) },
  'tts-1-hd': { character: nano(0.00003) },
};

const contents: Record<Model['capability'], Required<Pick<Model, 'input' | 'output'>>> = {
  chat: { input: ['text'], output: ['text'] },
  embedding: { input: ['text'], output: ['vector'] },
  image: { input: ['text', 'image'], output: ['image'] },
  transcription: { input: ['audio'], output: ['text'] },
  speech: { input: ['text'], output: ['audio'] },
  video: { input: ['text', 'image'], output: ['video'] },
};

/** A snapshot (`gpt-5.4-mini-2026-03-17`) has its model's limits and prices, unless it is listed itself. */
function findListed(id: string): PiAiModel | undefined {
  const listed = readPiAi('openai');
  const model = id.replace(/-20\d\d-\d\d-\d\d$/, '');
  return listed.find((one) => one.id === id) ?? listed.find((one) => one.id === model);
}

function contentsOf(id: string, traits: Traits, listed: PiAiModel | undefined) {
  const capability = capabilityOf(traits);
  if (listed?.input.includes('image'))
    return { input: ['text', 'image', 'file'], output: ['text'] } satisfies Partial<Model>;
  // It generates images, and accepts none.
  if (id === 'dall-e-3') return { input: ['text'], output: ['image'] } satisfies Partial<Model>;
  return contents[capability];
}

/**
 * A model of OpenAI. Its capability follows from its traits, else it is chat.
 * @param released its release date; undefined if no source has it
 */
function openai(id: string, released?: string, limits?: Limits, traits: Traits = {}): Model {
  const capability = capabilityOf(traits);
  const listed = capability === 'chat' && !traits.legacyCompletions ? findListed(id) : undefined;
  const day = piAiDate();
  const prices = (listed && pricesOfPiAi(listed)) ?? pricesOfGenai('openai', id, day) ?? documentedPrices[id];
  const reasons = limits !== omni && limits !== longFourth;
  return {
    id,
    created: seconds(released ?? day),
    ownedBy: 'openai',
    capability,
    routes: [{ vendor: 'openai', model: id }],
    ...contentsOf(id, traits, listed),
    ...(limits && { contextWindow: limits[0], maxOutputTokens: limits[1] }),
    ...(!limits && listed && { maxOutputTokens: listed.maxTokens }),
    ...(prices && { prices: { ...prices, ...(capability === 'chat' && tiersOf(`openai/${id}`, prices)) } }),
    // All its chat models support the Responses API, except those of the legacy completions.
    ...(capability === 'chat' && !traits.legacyCompletions && { responses: true }),
    // It rejects unknown fields. The fourth generation does not reason.
    ...(capability === 'chat' && {
      reasoning: reasons && !traits.legacyCompletions,
      chat: { hints: false, effort: reasons },
    }),
    ...traits,
  };
}

/**
 * The models of OpenAI: those for chat completions that its client lists (`ChatModel`, openai 7.57.0), and those for legacy
 * completions, embeddings, images, transcription and speech. Left out are models for search only, and those for its Responses
 * API only. Shutdowns are in shutdowns.ts. Limits are from https://platform.openai.com/docs/models: other lists lower them to what they
 * want to be charged.
 */
export const openaiModels: readonly Model[] = [
  openai('gpt-6.1-sol'),
  openai('gpt-6.1-terra'),
  openai('gpt-6-astra', undefined, million),
  openai('gpt-6-sol', undefined, million),
  openai('gpt-6-luna', undefined, million),
  openai('gpt-5.6-sol', '2026-06-26', million),
  openai('gpt-5.6-terra', '2026-06-26', million),
  openai('gpt-5.6-luna', '2026-06-26', million),
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
  openai('gpt-4o-transcribe-diarize', '2025-10-15', undefined, {
    transcription: { ...streamingText, diarizes: true },
  }),
  openai('tts-1', '2023-04-19', undefined, speech(false)),
  openai('tts-1-hd', '2023-11-03', undefined, speech(false)),
  openai('gpt-4o-mini-tts', '2025-03-19', undefined, speech(true)),
  openai('gpt-4o-mini-tts-2025-12-15', '2025-12-15', undefined, speech(true)),
];

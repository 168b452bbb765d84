import { capabilityOf } from './capability-of.ts';
import type { Model, Traits } from './model.ts';

const video = (...sizes: string[]): Traits => ({
  video: { sizes, seconds: ['4', '8', '12'], input: true, remix: true },
});

const image: Traits = {
  image: {
    tasks: ['generation', 'edit', 'variation'],
    sizes: ['256x256', '512x512', '1024x1024', '1536x1024', '1024x1536', '1792x1024', '1024x1792', 'auto'],
    most: 10,
    partial: true,
    responseFormat: true,
  },
};

type Prices = NonNullable<Model['prices']>;

/** A hundredth of a small model's prices. */
const textPrices: Prices = { input: 10_000, cachedInput: 2500, output: 40_000 };
/** Whole transcripts report their length, streamed ones their tokens. */
const transcriptPrices: Prices = { second: 10_000, input: 10_000, audioInput: 20_000, output: 40_000 };

/** A model of the sandbox vendor. */
function sandbox(id: string, traits: Traits = {}, prices: Prices = textPrices): Model {
  return {
    id,
    created: Date.parse('2025-01-01T00:00:00Z') / 1000,
    ownedBy: 'sandbox',
    capability: capabilityOf(traits),
    routes: [{ vendor: 'sandbox', model: id }],
    prices,
    ...traits,
  };
}

/**
 * The models of the built-in sandbox vendor (sandbox/): they are this project's own, so no source lists them. Their prices
 * apply only with `SLUICE_SANDBOX=priced`, for trying credit and budgets.
 */
export const sandboxModels: readonly Model[] = [
  sandbox('sandbox-chat'),
  sandbox('sandbox-reasoning'),
  sandbox('sandbox-responses', { responses: true }),
  sandbox('sandbox-instruct', { legacyCompletions: true }),
  sandbox('sandbox-embedding', { embedding: { dimensions: true, batch: 64 } }, { input: 1000 }),
  sandbox('sandbox-image', image, { image: 1_000_000 }),
  sandbox(
    'sandbox-transcribe',
    { transcription: { timestamps: true, translates: true, streams: true, diarizes: false } },
    transcriptPrices,
  ),
  sandbox('sandbox-speech', { speech: { formats: ['mp3', 'flac', 'wav', 'pcm'], events: true } }, { character: 1000 }),
  sandbox('sandbox-video', video('1280x720', '1792x1024'), { second: 1_000_000 }),
  sandbox('sandbox-video-portrait', video('720x1280', '1024x1792'), { second: 1_000_000 }),
];

/** The same models free of charge, so that trying them needs no credit. */
export const freeSandboxModels: readonly Model[] = sandboxModels.map((model) => ({
  ...model,
  prices: Object.fromEntries(Object.keys(model.prices ?? {}).map((name) => [name, 0])),
}));

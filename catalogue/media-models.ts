// A table of facts, each with its source: longer than other files, so that it can be read in one piece.
import { capabilityOf } from '../shared/catalogue/capability-of.ts';
import type { Model, Traits } from '../shared/catalogue/model.ts';
import { seconds } from './chat-models.ts';
import { readModelsDev } from './models-dev.ts';
import { piAiDate } from './pi-ai.ts';
import { nano, pricesOfGenai } from './prices.ts';
import type { SourceName } from './sources.ts';

/** A row, and which source names the model as one that is offered now. */
export interface MediaModel {
  readonly row: Model;
  /** Undefined: its vendor's page does, which stands beside the row. */
  readonly named: readonly [source: SourceName, name: string] | undefined;
}

const modelsDev = readModelsDev();

interface MediaFacts extends Pick<Model, 'prices' | 'contextWindow' | 'maxOutputTokens'> {
  readonly vendor: string;
  /** What the vendor calls it; left out: the id. */
  readonly model?: string;
  readonly maker: string;
  readonly input: Model['input'];
  readonly output: Model['output'];
  /** Its id in models.dev, which tells its release. */
  readonly dated?: string;
  readonly named: MediaModel['named'];
}

function media(id: string, facts: MediaFacts, traits: Traits): MediaModel {
  const { vendor, model = id, maker, dated, named, ...rest } = facts;
  const date = dated === undefined ? undefined : modelsDev.models[dated]?.released;
  return {
    named,
    row: {
      id,
      created: seconds(date ?? piAiDate()),
      ownedBy: maker,
      capability: capabilityOf(traits),
      routes: [{ vendor, model }],
      ...rest,
      ...traits,
    },
  };
}

/** Pictures of any size, as links. */
const linkedImages = (tasks: NonNullable<Model['image']>['tasks'], most = 1): Traits => ({
  image: { tasks, most, partial: false, responseFormat: true },
});

/** https://docs.bfl.ai; names are those of its paths. Width and height are free within bounds. */
function flux(name: string, edits: boolean): MediaModel {
  return media(
    name,
    {
      ...{ vendor: 'black-forest-labs', maker: 'black-forest-labs', dated: `vercel/bfl/${name}` },
      ...{ input: edits ? ['text', 'image'] : ['text'], output: ['image'], named: ['@ai-sdk/gateway', `bfl/${name}`] },
    },
    linkedImages(edits ? ['generation', 'edit'] : ['generation']),
  );
}

/** https://ai.google.dev/gemini-api/docs/image-generation. Shapes are by ratio, so sizes are not fixed. */
function geminiImage(name: string): MediaModel {
  const prices = pricesOfGenai('google', name, piAiDate());
  return media(
    name,
    {
      ...{ vendor: 'gemini', maker: 'google', input: ['text', 'image'], output: ['text', 'image'] },
      ...{ dated: `vercel/google/${name}`, named: ['@ai-sdk/gateway', `google/${name}`] },
      ...(prices && { prices }),
    },
    { image: { tasks: ['generation', 'edit'], most: 1, partial: false, responseFormat: false } },
  );
}

const veoSizes = ['1280x720', '720x1280', '1920x1080', '1080x1920'];

/**
 * https://ai.google.dev/gemini-api/docs/video; the price is of LiteLLM's list. Lengths other than 8 seconds are for 720p
 * only.
 */
function veo(name: string, dated: string | undefined, dollarsASecond: number | undefined): MediaModel {
  return media(
    name,
    {
      ...{ vendor: 'gemini', maker: 'google', input: ['text', 'image'], output: ['video', 'audio'] },
      ...(dated !== undefined && { dated }),
      ...(dollarsASecond !== undefined && { prices: { second: nano(dollarsASecond) } }),
      named: ['@ai-sdk/google', name],
    },
    {
      video: {
        ...{ sizes: veoSizes, seconds: ['8', '4', '6'], input: true, remix: false },
      },
    },
  );
}

/** https://fal.ai/models and each model's page. @param most its `num_images` */
function falImage(name: string, maker: string, task: 'generation' | 'edit', most = 1): MediaModel {
  return media(
    `fal/${name}`,
    {
      ...{ vendor: 'fal', model: `fal-ai/${name}`, maker, named: ['@ai-sdk/fal', `fal-ai/${name}`] },
      ...{ input: task === 'edit' ? ['text', 'image'] : ['text'], output: ['image'] },
    },
    linkedImages([task], most),
  );
}

/** Videos of Veo, but for its price: by the page of the model at its vendor. */
function servedVeo(vendor: 'fal' | 'replicate', name: string, model: string, input: boolean): MediaModel {
  return media(
    `${vendor}/${name}`,
    {
      ...{ vendor, model, maker: 'google', dated: 'vercel/google/veo-3.0-fast-generate-001', named: undefined },
      ...{ input: input ? ['text', 'image'] : ['text'], output: ['video', 'audio'] },
    },
    { video: { sizes: veoSizes, seconds: ['8', '4', '6'], input, remix: false } },
  );
}

/** https://replicate.com/explore and each model's page. */
function replicateImage(name: string, maker: string): MediaModel {
  return media(
    `replicate/${name}`,
    { vendor: 'replicate', model: name, maker, input: ['text'], output: ['image'], named: ['@ai-sdk/replicate', name] },
    linkedImages(['generation']),
  );
}

/** https://developers.deepgram.com/docs/models-languages-overview; prices by LiteLLM's list of 2025-09-05. */
function nova(name: string, dollarsASecond: number): MediaModel {
  return media(
    `deepgram/${name}`,
    {
      ...{ vendor: 'deepgram', model: name, maker: 'deepgram', input: ['audio'], output: ['text'] },
      ...{ prices: { second: nano(dollarsASecond) }, named: ['@ai-sdk/deepgram', name] },
    },
    { transcription: { timestamps: true, translates: false, streams: false, diarizes: true } },
  );
}

/**
 * https://developers.deepgram.com/docs/tts-models; prices by https://github.com/Portkey-AI/models at f654307, 2026-08-21. A
 * voice is a model.
 */
function aura(name: string): MediaModel {
  return media(
    `deepgram/${name}`,
    {
      ...{ vendor: 'deepgram', model: name, maker: 'deepgram', input: ['text'], output: ['audio'] },
      ...{ prices: { character: nano(0.00003) }, named: ['@ai-sdk/deepgram', name] },
    },
    { speech: { formats: ['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm'], events: false } },
  );
}

/** https://elevenlabs.io/docs/overview/models. */
function eleven(name: string): MediaModel {
  return media(
    name,
    {
      vendor: 'elevenlabs',
      maker: 'elevenlabs',
      input: ['text'],
      output: ['audio'],
      named: ['@ai-sdk/elevenlabs', name],
    },
    { speech: { formats: ['mp3', 'opus', 'pcm'], events: false } },
  );
}

/** https://elevenlabs.io/docs/overview/capabilities/speech-to-text. */
function scribe(name: string, named: MediaModel['named']): MediaModel {
  return media(
    name,
    { vendor: 'elevenlabs', maker: 'elevenlabs', input: ['audio'], output: ['text'], named },
    { transcription: { timestamps: true, translates: false, streams: false, diarizes: true } },
  );
}

/** https://www.assemblyai.com/docs/getting-started/models. */
function universal(name: string): MediaModel {
  return media(
    `assemblyai/${name}`,
    {
      ...{ vendor: 'assemblyai', model: name, maker: 'assemblyai', input: ['audio'], output: ['text'] },
      named: ['@ai-sdk/assemblyai', name],
    },
    { transcription: { timestamps: true, translates: false, streams: false, diarizes: true } },
  );
}

/** https://console.groq.com/docs/speech-to-text. */
function groqWhisper(name: string, translates: boolean): MediaModel {
  const prices = pricesOfGenai('groq', name, piAiDate());
  return media(
    `groq/${name}`,
    {
      ...{ vendor: 'groq', model: name, maker: 'openai', input: ['audio'], output: ['text'], dated: `groq/${name}` },
      ...(prices && { prices }),
      named: ['@pydantic/genai-prices', name],
    },
    { transcription: { timestamps: true, translates, streams: false, diarizes: false } },
  );
}

/** Embeddings of Google: https://ai.google.dev/gemini-api/docs/embeddings; a batch holds at most 100. */
function geminiEmbedding(name: string, contextWindow: number): MediaModel {
  const prices = pricesOfGenai('google', name, piAiDate());
  return media(
    name,
    {
      ...{ vendor: 'gemini', maker: 'google', input: ['text'], output: ['vector'], contextWindow },
      ...(prices && { prices }),
      dated: `vercel/google/${name}`,
      named: ['@ai-sdk/gateway', `google/${name}`],
    },
    { embedding: { dimensions: true, batch: 100 } },
  );
}

/** https://docs.mistral.ai/capabilities/embeddings: 16,384 tokens in one call, so sixteen inputs at a time are few enough. */
function mistralEmbedding(name: string): MediaModel {
  const prices = pricesOfGenai('mistral', name, piAiDate());
  return media(
    name,
    {
      ...{ vendor: 'mistral', maker: 'mistral', input: ['text'], output: ['vector'], contextWindow: 8192 },
      ...(prices && { prices }),
      dated: `vercel/mistral/${name}`,
      named: ['@ai-sdk/gateway', `mistral/${name}`],
    },
    // It calls the number of dimensions otherwise than OpenAI does.
    { embedding: { dimensions: false, batch: 16, batchTokens: 16_384 } },
  );
}

/**
 * Models of images, videos, audio and embeddings, kept by hand from the vendors' documents: no package describes them. Each
 * is named by a package that lists what is offered now: one that is named no more stops the generator.
 */
export function mediaModels(): MediaModel[] {
  return [
    geminiEmbedding('gemini-embedding-001', 2048),
    geminiEmbedding('gemini-embedding-2', 8192),
    mistralEmbedding('mistral-embed'),
    mistralEmbedding('codestral-embed'),
    flux('flux-2-max', true),
    flux('flux-2-pro', true),
    flux('flux-2-flex', true),
    flux('flux-2-klein-9b', true),
    flux('flux-2-klein-4b', true),
    flux('flux-kontext-max', true),
    flux('flux-kontext-pro', true),
    flux('flux-pro-1.1-ultra', false),
    flux('flux-pro-1.1', false),
    geminiImage('gemini-2.5-flash-image'),
    geminiImage('gemini-3-pro-image'),
    geminiImage('gemini-3.1-flash-image'),
    geminiImage('gemini-3.1-flash-lite-image'),
    falImage('flux/dev', 'black-forest-labs', 'generation', 4),
    falImage('flux/schnell', 'black-forest-labs', 'generation', 4),
    falImage('flux/krea', 'black-forest-labs', 'generation', 4),
    falImage('flux-pro/v1.1', 'black-forest-labs', 'generation', 4),
    falImage('flux-pro/v1.1-ultra', 'black-forest-labs', 'generation', 4),
    falImage('flux-pro/kontext', 'black-forest-labs', 'edit', 4),
    falImage('flux-pro/kontext/max', 'black-forest-labs', 'edit', 4),
    falImage('qwen-image', 'qwen', 'generation', 4),
    falImage('recraft/v3/text-to-image', 'recraft', 'generation'),
    falImage('bytedance/dreamina/v3.1/text-to-image', 'bytedance', 'generation'),
    falImage('luma-photon', 'luma', 'generation'),
    falImage('luma-photon/flash', 'luma', 'generation'),
    replicateImage('black-forest-labs/flux-2-pro', 'black-forest-labs'),
    replicateImage('black-forest-labs/flux-2-dev', 'black-forest-labs'),
    replicateImage('black-forest-labs/flux-1.1-pro', 'black-forest-labs'),
    replicateImage('black-forest-labs/flux-1.1-pro-ultra', 'black-forest-labs'),
    replicateImage('black-forest-labs/flux-dev', 'black-forest-labs'),
    replicateImage('black-forest-labs/flux-schnell', 'black-forest-labs'),
    replicateImage('stability-ai/stable-diffusion-3.5-large', 'stability'),
    replicateImage('stability-ai/stable-diffusion-3.5-large-turbo', 'stability'),
    replicateImage('stability-ai/stable-diffusion-3.5-medium', 'stability'),
    replicateImage('recraft-ai/recraft-v3', 'recraft'),
    replicateImage('ideogram-ai/ideogram-v2', 'ideogram'),
    replicateImage('luma/photon', 'luma'),
    veo('veo-3.1-generate-preview', 'vercel/google/veo-3.1-generate-001', 0.4),
    veo('veo-3.1-fast-generate-preview', 'vercel/google/veo-3.1-fast-generate-001', undefined),
    veo('veo-3.1-lite-generate-preview', undefined, undefined),
    // https://fal.ai/models/fal-ai/veo3/fast/llms.txt: pictures go to another path.
    servedVeo('fal', 'veo3/fast', 'fal-ai/veo3/fast', false),
    // https://replicate.com/google/veo-3-fast/api/schema
    servedVeo('replicate', 'google/veo-3-fast', 'google/veo-3-fast', true),
    groqWhisper('whisper-large-v3', true),
    groqWhisper('whisper-large-v3-turbo', false),
    nova('nova-3', 0.00007167),
    nova('nova-3-medical', 0.00008667),
    nova('nova-2', 0.00007167),
    universal('universal-3-5-pro'),
    universal('universal-3-pro'),
    universal('universal-2'),
    scribe('scribe_v2', ['@ai-sdk/gateway', 'elevenlabs/scribe-v2']),
    aura('aura-2-thalia-en'),
    aura('aura-2-asteria-en'),
    aura('aura-2-helena-en'),
    aura('aura-2-orpheus-en'),
    aura('aura-2-zeus-en'),
    eleven('eleven_v3'),
    eleven('eleven_multilingual_v2'),
    eleven('eleven_flash_v2_5'),
    eleven('eleven_flash_v2'),
  ];
}

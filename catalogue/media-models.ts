// A table of facts, each with its source: longer than other files, so that it can be read in one piece.
import { linkedImages, type MediaModel, media } from './media-model.ts';
import { piAiDate } from './pi-ai.ts';
import { nano, pricesOfGenai } from './prices.ts';
import { stabilityModels } from './stability-models.ts';
import { videoModels } from './video-models.ts';

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

/** https://ai.google.dev/gemini-api/docs/image-generation. Shapes are set by ratio, so sizes are not fixed. */
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

/**
 * https://fal.ai/models and each model's page.
 * @param most its `num_images`
 */
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

/** https://docs.lumalabs.ai/docs/image-generation. Shapes are set by ratio; input images need Luma's own fields. */
function lumaPhoton(name: string): MediaModel {
  return media(
    `luma/${name}`,
    { vendor: 'luma', model: name, maker: 'luma', input: ['text'], output: ['image'], named: undefined },
    linkedImages(['generation']),
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

/** https://developers.deepgram.com/docs/models-languages-overview; prices from LiteLLM's list of 2025-09-05. */
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
 * https://developers.deepgram.com/docs/tts-models; prices from https://github.com/Portkey-AI/models at f654307, 2026-08-21. A
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

/**
 * https://www.assemblyai.com/docs/getting-started/models; prices from https://www.assemblyai.com/pricing as of 2026-10-07,
 * which gives them per hour.
 */
function universal(name: string, dollarsAnHour: number | undefined): MediaModel {
  return media(
    `assemblyai/${name}`,
    {
      ...{ vendor: 'assemblyai', model: name, maker: 'assemblyai', input: ['audio'], output: ['text'] },
      ...(dollarsAnHour !== undefined && { prices: { second: nano(dollarsAnHour / 3600) } }),
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

/** https://console.groq.com/docs/text-to-speech, prices from https://console.groq.com/docs/models; it produces only WAV. */
function orpheus(name: string, dollarsACharacter: number): MediaModel {
  return media(
    `groq/${name}`,
    {
      ...{ vendor: 'groq', model: name, maker: 'canopylabs', input: ['text'], output: ['audio'] },
      ...{ prices: { character: nano(dollarsACharacter) }, named: undefined },
    },
    { speech: { formats: ['wav'], events: false } },
  );
}

/** Google's embeddings: https://ai.google.dev/gemini-api/docs/embeddings; a batch contains at most 100. */
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

/** https://docs.mistral.ai/capabilities/embeddings: 16,384 tokens per call, so batches of sixteen inputs are small enough. */
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
    // Its name for the number of dimensions differs from OpenAI's.
    { embedding: { dimensions: false, batch: 16, batchTokens: 16_384 } },
  );
}

/**
 * Models of images, videos, audio and embeddings, maintained by hand from the vendors' documentation: no package describes
 * them. Each refers to a package that lists current models: if it disappears from there, the generator stops.
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
    ...stabilityModels(),
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
    lumaPhoton('photon-1'),
    lumaPhoton('photon-flash-1'),
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
    ...videoModels(),
    groqWhisper('whisper-large-v3', true),
    groqWhisper('whisper-large-v3-turbo', false),
    orpheus('canopylabs/orpheus-v1-english', 0.000022),
    orpheus('canopylabs/orpheus-arabic-saudi', 0.00004),
    nova('nova-3', 0.00007167),
    nova('nova-3-medical', 0.00008667),
    nova('nova-2', 0.00007167),
    universal('universal-3-5-pro', 0.21),
    universal('universal-3-pro', undefined),
    universal('universal-2', 0.15),
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

import type { Model } from '../shared/catalogue/model.ts';
import { type MediaModel, media } from './media-model.ts';
import { nano } from './prices.ts';

const veoSizes = ['1280x720', '720x1280', '1920x1080', '1080x1920'];

/** https://ai.google.dev/gemini-api/docs/video; the price is from LiteLLM's list. Lengths other than 8 seconds require 720p. */
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

/** Veo's videos at another vendor, without its price: from the model's page there. */
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

type VideoTraits = NonNullable<Model['video']>;
type VideoShapes = Pick<VideoTraits, 'sizes' | 'seconds'> & Partial<Pick<VideoTraits, 'input'>>;

/** Every whole number of seconds in a range, the default first. */
function lengths(preferred: number, from: number, to: number): string[] {
  const all = Array.from({ length: to - from + 1 }, (_, index) => from + index);
  return [preferred, ...all.filter((length) => length !== preferred)].map(String);
}

/**
 * Names, sizes and lengths from the types of @runwayml/sdk 4.20.1. Prices from https://docs.dev.runwayml.com/guides/pricing,
 * as quoted on 2026-09-09 (a credit is $0.01), if one applies to every size and with or without sound.
 */
function runway(name: string, maker: string, video: VideoShapes, dollarsASecond?: number): MediaModel {
  return media(
    `runway/${name}`,
    {
      ...{ vendor: 'runway', model: name, maker, input: ['text', 'image'], named: undefined },
      output: maker === 'runway' ? ['video'] : ['video', 'audio'],
      ...(dollarsASecond !== undefined && { prices: { second: nano(dollarsASecond) } }),
    },
    { video: { input: true, ...video, remix: false } },
  );
}

/** https://docs.lumalabs.ai/docs/video-generation; prices are per pixel there. */
function lumaRay(name: string): MediaModel {
  return media(
    `luma/${name}`,
    { vendor: 'luma', model: name, maker: 'luma', input: ['text', 'image'], output: ['video'], named: undefined },
    {
      video: {
        sizes: [...veoSizes, '960x540', '540x960', '3840x2160', '2160x3840'],
        ...{ seconds: ['5', '9'], input: 'links', remix: false },
      },
    },
  );
}

/**
 * A Kling model in its standard mode, 720p, and its professional one, 1080p. Prices from
 * https://kling.ai/document-api/pricing/base/video, as quoted on 2026-08-13, without sound, which is the default.
 */
function kling(
  name: string,
  listed: string,
  seconds: string[],
  dollars: readonly [standard: number, professional: number],
): MediaModel[] {
  return dollars.map((dollarsASecond, mode) =>
    media(
      mode === 0 ? `kling/${name}` : `kling/${name}-pro`,
      {
        ...{ vendor: 'kling', model: name, maker: 'kling', input: ['text', 'image'], output: ['video'] },
        ...{ prices: { second: nano(dollarsASecond) }, named: ['@ai-sdk/gateway', `klingai/${listed}`] },
      },
      {
        video: {
          sizes: mode === 0 ? ['1280x720', '720x1280'] : ['1920x1080', '1080x1920'],
          ...{ seconds, input: true, remix: false },
        },
      },
    ),
  );
}

/** Video models, maintained like those of other media. */
export function videoModels(): MediaModel[] {
  return [
    veo('veo-3.1-generate-preview', 'vercel/google/veo-3.1-generate-001', 0.4),
    veo('veo-3.1-fast-generate-preview', 'vercel/google/veo-3.1-fast-generate-001', undefined),
    veo('veo-3.1-lite-generate-preview', undefined, undefined),
    // https://fal.ai/models/fal-ai/veo3/fast/llms.txt: pictures use another path.
    servedVeo('fal', 'veo3/fast', 'fal-ai/veo3/fast', false),
    // https://replicate.com/google/veo-3-fast/api/schema
    servedVeo('replicate', 'google/veo-3-fast', 'google/veo-3-fast', true),
    runway('gen4.5', 'runway', { sizes: ['1280x720', '720x1280'], seconds: lengths(5, 2, 10) }, 0.12),
    runway(
      'gen4_turbo',
      'runway',
      {
        sizes: ['1280x720', '720x1280', '1104x832', '832x1104', '960x960', '1584x672'],
        seconds: lengths(5, 2, 10),
        input: 'always',
      },
      0.05,
    ),
    runway('veo3.1', 'google', { sizes: veoSizes, seconds: ['8', '4', '6'] }),
    runway('veo3.1_fast', 'google', { sizes: veoSizes, seconds: ['8', '4', '6'] }),
    lumaRay('ray-2'),
    lumaRay('ray-flash-2'),
    ...kling('kling-v3', 'kling-v3.0-t2v', lengths(5, 3, 15), [0.084, 0.112]),
    ...kling('kling-v2-6', 'kling-v2.6-t2v', ['5', '10'], [0.042, 0.07]),
    ...kling('kling-v2-5-turbo', 'kling-v2.5-turbo-t2v', ['5', '10'], [0.042, 0.07]),
  ];
}

import { z } from 'zod';
import { compiledOnUse } from './compiled-on-use.ts';

/** Content types of the speech formats, as OpenAI returns them. */
export const speechTypes = {
  mp3: 'audio/mpeg',
  opus: 'audio/opus',
  aac: 'audio/aac',
  flac: 'audio/flac',
  wav: 'audio/wav',
  pcm: 'audio/pcm',
} as const;

/** A speech format. */
export type SpeechFormat = keyof typeof speechTypes;

/** All speech formats. */
export const speechFormats = Object.keys(speechTypes) as SpeechFormat[];

/** Characters, not UTF-16 units: an emoji is one. */
const maxInput = 4096;

const text = (): z.ZodString =>
  z.string().refine((value) => value.length <= maxInput || [...value].length <= maxInput, {
    message: `it can have at most ${maxInput} characters`,
  });

/** OpenAI's `CreateSpeechRequest`. Voices are validated by the vendor. Unknown fields are kept. */
export const speechRequest = compiledOnUse(
  z.looseObject({
    model: z.string().min(1).max(256),
    input: text().min(1),
    voice: z.union([z.string().min(1), z.looseObject({ id: z.string().min(1) })]),
    instructions: text().optional(),
    response_format: z.enum(speechFormats).optional(),
    speed: z.number().min(0.25).max(4).optional(),
    stream_format: z.enum(['audio', 'sse']).optional(),
  }),
);

/**
 * The request of a speech job: the caller's fields without `model`, the format always set. Its answer: `delta` frames
 * `{"audio": <base64>}` of up to 32 KiB of audio each, if there is a reader; the `end` frame is a `SpeechEnd`.
 */
export interface SpeechJobRequest {
  readonly input: string;
  readonly response_format: SpeechFormat;
  /** Set if the caller receives the audio as events. Vendors that support events are always asked for them, as they report the usage. */
  readonly stream_format?: 'sse';
  readonly [name: string]: unknown;
}

/** The voices that OpenAI documents; a client that changed only its model still sends one. */
const openAiVoices: ReadonlySet<string> = new Set([
  ...['alloy', 'ash', 'ballad', 'coral', 'echo', 'fable', 'onyx', 'nova', 'sage', 'shimmer', 'verse', 'marin', 'cedar'],
]);

/** The name of a voice given as a name, or as an object with its id. */
export function nameOfVoice(voice: unknown): string {
  return String(typeof voice === 'object' && voice !== null && 'id' in voice ? voice.id : voice);
}

/** Whether a voice is one of OpenAI's, which other vendors do not have. */
export function isOpenAiVoice(voice: unknown): boolean {
  return openAiVoices.has(nameOfVoice(voice));
}

/** The `end` frame of a speech job. */
export interface SpeechEnd {
  readonly usage: Readonly<Record<string, unknown>> | null;
  /** Set if the caller receives the audio as events, so that a replay needs the frames. */
  readonly events?: true;
  /** The whole audio, stored if the answer can be read again later: the id of its blob, and its media type. */
  readonly file?: { readonly file: string; readonly type: string; readonly bytes: number };
}

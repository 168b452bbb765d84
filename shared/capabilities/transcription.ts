import { z } from 'zod';
import { compiledOnUse } from './compiled-on-use.ts';

/** Formats of a translation (OpenAI's `AudioResponseFormat` without speakers). */
const translationFormats = ['json', 'text', 'srt', 'verbose_json', 'vtt'] as const;
const transcriptionFormats = [...translationFormats, 'diarized_json'] as const;

/** What a caller can have a transcript as. */
export type TranscriptionFormat = (typeof transcriptionFormats)[number];

const common = {
  model: z.string().min(1).max(256),
  prompt: z.string().optional(),
  temperature: z.number().min(0).max(1).optional(),
};

// Lists that OpenAI keeps adding to (`include`) are plain strings: what a vendor knows is for the vendor to say.
const transcriptionFields = z.looseObject({
  ...common,
  language: z.string().optional(),
  languages: z.array(z.string()).optional(),
  keywords: z.array(z.string()).optional(),
  response_format: z.enum(transcriptionFormats).optional(),
  timestamp_granularities: z.array(z.enum(['word', 'segment'])).optional(),
  include: z.array(z.string()).optional(),
  stream: z.boolean().optional(),
  chunking_strategy: z.string().optional(),
  known_speaker_names: z.array(z.string()).max(4).optional(),
  known_speaker_references: z.array(z.string()).max(4).optional(),
});

type TranscriptionFields = z.infer<typeof transcriptionFields>;

/**
 * The fields of OpenAI's `CreateTranscriptionRequest` but for the file, read from a form: numbers and booleans are such,
 * lists are arrays. Unknown fields are kept.
 */
export const transcriptionRequest = compiledOnUse(
  transcriptionFields.check(({ value, issues }) => {
    const broken = brokenRule(value);
    if (broken) issues.push({ code: 'custom', input: value, path: [broken.param], message: broken.message });
  }),
);

/** The same of `CreateTranslationRequest`, which knows no stream. */
export const translationRequest = compiledOnUse(
  z.looseObject({
    ...common,
    response_format: z.enum(translationFormats).optional(),
    stream: z.literal(false).optional(),
  }),
);

function brokenRule(fields: TranscriptionFields): { param: keyof TranscriptionFields; message: string } | undefined {
  const format = fields.response_format ?? 'json';
  if (fields.timestamp_granularities !== undefined && format !== 'verbose_json') {
    return { param: 'timestamp_granularities', message: "it needs 'response_format' to be 'verbose_json'" };
  }
  if (fields.include?.includes('logprobs') && format !== 'json') {
    return { param: 'include', message: "log probabilities need 'response_format' to be 'json'" };
  }
  if (fields.stream === true && (format === 'srt' || format === 'vtt' || format === 'verbose_json')) {
    return { param: 'response_format', message: `'${format}' cannot be streamed` };
  }
  return undefined;
}

/**
 * The request of a transcription job; the audio is its upload. Its answer: `delta` frames are events (`{"type": "transcript.text.delta",
 * "delta", …}`, and `transcript.text.segment` where speakers are told apart); the `end` frame is `{"text", "language"?,
 * "duration"?, "segments"?, "words"?, "logprobs"?, "usage"?, …}`, as the vendor gave it. Times are seconds.
 */
export interface TranscriptionJobRequest {
  /** To write down what is said, or to translate it into English. */
  readonly task: 'transcribe' | 'translate';
  /** What the caller gets. A vendor is asked for what it is made of: srt, vtt and verbose_json need timed segments. */
  readonly format: TranscriptionFormat;
  /** All other fields, those unknown to the gateway as text. */
  readonly options: Readonly<Record<string, string | number | boolean | readonly string[]>>;
}

/** A timed piece of a transcript, as far as subtitles need it. */
export interface TranscriptSegment {
  /** Seconds. */
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

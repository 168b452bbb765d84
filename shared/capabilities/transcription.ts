import { z } from 'zod';
import { compiledOnUse } from './compiled-on-use.ts';

/** Formats of a translation (OpenAI's `AudioResponseFormat` without speakers). */
const translationFormats = ['json', 'text', 'srt', 'verbose_json', 'vtt'] as const;
const transcriptionFormats = [...translationFormats, 'diarized_json'] as const;

/** Output formats of a transcript. */
export type TranscriptionFormat = (typeof transcriptionFormats)[number];

const common = {
  model: z.string().min(1).max(256),
  prompt: z.string().optional(),
  temperature: z.number().min(0).max(1).optional(),
};

// Lists that OpenAI keeps extending (`include`) are plain strings: the vendor decides what it knows.
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
 * The fields of OpenAI's `CreateTranscriptionRequest` except the file, parsed from a form: numbers, booleans and lists have
 * their types. Unknown fields are kept.
 */
export const transcriptionRequest = compiledOnUse(
  transcriptionFields.check(({ value, issues }) => {
    const broken = brokenRule(value);
    if (broken) issues.push({ code: 'custom', input: value, path: [broken.param], message: broken.message });
  }),
);

/** The same for `CreateTranslationRequest`, which has no streaming. */
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
 * The request of a transcription job; the audio is its upload. Its answer: `delta` frames are events (`{"type":
 * "transcript.text.delta", "delta", …}`, and `transcript.text.segment` with speaker diarization); the `end` frame is `{"text",
 * "language"?, "duration"?, "segments"?, "words"?, "logprobs"?, "usage"?, …}`, as the vendor returned it. Times are seconds.
 */
export interface TranscriptionJobRequest {
  /** Transcribe the audio, or translate it into English. */
  readonly task: 'transcribe' | 'translate';
  /** The caller's output format. The vendor is asked for its source data: srt, vtt and verbose_json need timed segments. */
  readonly format: TranscriptionFormat;
  /** Set by the worker: the price is by the second, so the vendor is asked for a format that tells the length of the audio. */
  readonly is_timed?: boolean;
  /** All other fields, those unknown to the gateway as text. */
  readonly options: Readonly<Record<string, string | number | boolean | readonly string[]>>;
}

/** A timed piece of a transcript, with the fields that subtitles need. */
export interface TranscriptSegment {
  /** Seconds. */
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

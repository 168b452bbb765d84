import type { Upload } from '../../../shared/blobs/upload.ts';
import type { TranscriptionJobRequest } from '../../../shared/capabilities/transcription.ts';
import { ApiError } from '../../../shared/errors.ts';
import { requestText } from '../request-body.ts';
import type { VendorCall } from '../vendor.ts';
import { unsupportedField } from './unsupported-field.ts';

/** A transcription job for vendors that do not speak OpenAI's dialect. */
export interface TranscriptionRequest {
  readonly format: TranscriptionJobRequest['format'];
  readonly file: Upload;
  /** Languages that may be spoken; none: the vendor detects them. */
  readonly languages: readonly string[];
  /** Words that the vendor should expect. */
  readonly keywords: readonly string[];
  /** The subject of the audio, for vendors that take it. */
  readonly prompt: string | undefined;
  /** The randomness, for vendors that take it. */
  readonly temperature: number | undefined;
  /** The granularities of timestamps in `verbose_json`. */
  readonly timed: readonly string[];
  /** Fields that are not OpenAI's: the vendor's own. */
  readonly own: Readonly<Record<string, unknown>>;
}

/**
 * Reads a transcription job for a vendor that supports no translation, streams, log probabilities or speakers by name.
 * `chunking_strategy`, which is only a hint about splitting the audio, is left out.
 * @throws ApiError 400 naming the field that asks for something unsupported.
 */
export function readTranscriptionRequest(call: VendorCall): TranscriptionRequest {
  const { task, format, options } = JSON.parse(requestText(call.request)) as TranscriptionJobRequest;
  if (task === 'translate') throw unsupportedField('model', 'its vendor does not translate');
  if (call.stream) throw unsupportedField('stream', "the model's vendor does not stream transcripts");
  const { language, languages, keywords, prompt, temperature, timestamp_granularities: timed, ...rest } = options;
  const { include, chunking_strategy: _, ...own } = rest;
  if (listOf(include).length > 0) throw unsupportedField('include', "the model's vendor has nothing to include");
  for (const name of ['known_speaker_names', 'known_speaker_references']) {
    if (own[name] !== undefined) throw unsupportedField(name, "the model's vendor knows no speakers by name");
  }
  return {
    format,
    file: audioOf(call),
    languages: typeof language === 'string' ? [language] : listOf(languages),
    keywords: listOf(keywords),
    prompt: typeof prompt === 'string' && prompt !== '' ? prompt : undefined,
    temperature: typeof temperature === 'number' ? temperature : undefined,
    timed: timed === undefined ? ['segment'] : listOf(timed),
    // OpenAI's form for a custom strategy: `chunking_strategy[type]`.
    own: Object.fromEntries(Object.entries(own).filter(([name]) => !name.startsWith('chunking_strategy['))),
  };
}

/** The audio of a transcription job. */
export function audioOf({ uploads: [audio] }: Pick<VendorCall, 'uploads'>): Upload {
  if (audio === undefined) throw new ApiError('server_error', 'The audio file of this job is missing.');
  return audio;
}

/** Whether a format consists of timed segments. */
export function needsSegments({ format, timed }: TranscriptionRequest): boolean {
  if (format === 'verbose_json') return timed.includes('segment');
  return format === 'srt' || format === 'vtt' || format === 'diarized_json';
}

function listOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

import type { VendorAnswer } from '../vendor.ts';
import { needsSegments, type TranscriptionRequest } from './transcription-request.ts';

/** A timed segment of a transcript; times are seconds. */
export interface TranscriptSegment {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** The vendor's label of the speaker. */
  readonly speaker?: string | number | undefined;
}

/** A vendor's transcript in a neutral form. */
export interface Transcript {
  readonly text: string;
  readonly language: string | undefined;
  /** Seconds. */
  readonly duration: number | undefined;
  readonly segments: readonly TranscriptSegment[];
  readonly words: readonly { readonly word: string; readonly start: number; readonly end: number }[];
}

/**
 * The fields of a segment that only Whisper has, with values that raise no doubt: OpenAI documents all of them as present, and
 * typed clients, such as Vercel's AI SDK, take no transcript without them.
 */
const ofWhisper = { seek: 0, tokens: [], temperature: 0, avg_logprob: 0, compression_ratio: 1, no_speech_prob: 0 };

/**
 * A transcript in OpenAI's shape for the format that the caller wants
 * (https://platform.openai.com/docs/api-reference/audio/json-object, verbose-json-object, diarized-json-object).
 */
export function transcriptAnswer(request: TranscriptionRequest, transcript: Transcript): VendorAnswer {
  const { text, language, duration, words } = transcript;
  const usage = isLength(duration) ? { type: 'duration', seconds: duration } : null;
  const common = { text, ...(usage && { usage }) };
  const segments = needsSegments(request) ? transcript.segments : undefined;
  switch (request.format) {
    case 'verbose_json': {
      const timed = {
        segments: segments?.map(({ start, end, text }, id) => ({ id, start, end, text, ...ofWhisper })),
        words: request.timed.includes('word') ? words : undefined,
      };
      return { body: JSON.stringify({ task: 'transcribe', language, duration, ...common, ...timed }), usage };
    }
    case 'diarized_json': {
      const said = { task: 'transcribe', duration, ...common, segments: diarized(transcript.segments) };
      return { body: JSON.stringify(said), usage };
    }
    default:
      return { body: JSON.stringify({ ...common, duration: segments && duration, segments }), usage };
  }
}

/** Whether a vendor has told a length of audio or of a film: one of 0 would cost nothing, and one without an end nothing that is known. */
export function isLength(duration: unknown): duration is number {
  return typeof duration === 'number' && duration > 0 && Number.isFinite(duration);
}

/** Speakers are labelled A, B, C, … in order of appearance. */
function diarized(segments: readonly TranscriptSegment[]): readonly object[] {
  const labels = new Map<unknown, string>();
  return segments.map(({ start, end, text, speaker }, index) => {
    const label = labels.get(speaker) ?? speakerLabel(labels.size);
    labels.set(speaker, label);
    return { type: 'transcript.text.segment', id: `seg_${index}`, start, end, text, speaker: label };
  });
}

/** Z is followed by AA. */
function speakerLabel(index: number): string {
  const letter = String.fromCharCode(65 + (index % 26));
  return index < 26 ? letter : speakerLabel(Math.floor(index / 26) - 1) + letter;
}

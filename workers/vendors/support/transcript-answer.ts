import type { VendorAnswer } from '../vendor.ts';
import { needsSegments, type TranscriptionRequest } from './transcription-request.ts';

/** A timed piece of what a vendor heard; times are seconds. */
export interface HeardSegment {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** As the vendor calls who speaks. */
  readonly speaker?: string | number | undefined;
}

/** What a vendor heard, whatever its own words for it. */
export interface HeardTranscript {
  readonly text: string;
  readonly language: string | undefined;
  /** Seconds. */
  readonly duration: number | undefined;
  readonly segments: readonly HeardSegment[];
  readonly words: readonly { readonly word: string; readonly start: number; readonly end: number }[];
}

/**
 * A transcript in OpenAI's words for the format that the caller wants
 * (https://platform.openai.com/docs/api-reference/audio/json-object, verbose-json-object, diarized-json-object). What only
 * Whisper can tell of a segment (its tokens and their probabilities) is left out.
 */
export function transcriptAnswer(request: TranscriptionRequest, heard: HeardTranscript): VendorAnswer {
  const { text, language, duration, words } = heard;
  const usage = duration === undefined ? null : { type: 'duration', seconds: duration };
  const common = { text, ...(usage && { usage }) };
  const segments = needsSegments(request) ? heard.segments : undefined;
  switch (request.format) {
    case 'verbose_json': {
      const timed = {
        segments: segments?.map(({ start, end, text }, id) => ({ id, start, end, text })),
        words: request.timed.includes('word') ? words : undefined,
      };
      return { body: JSON.stringify({ task: 'transcribe', language, duration, ...common, ...timed }), usage };
    }
    case 'diarized_json': {
      const said = { task: 'transcribe', duration, ...common, segments: diarized(heard.segments) };
      return { body: JSON.stringify(said), usage };
    }
    default:
      return { body: JSON.stringify({ ...common, duration: segments && duration, segments }), usage };
  }
}

/** Speakers are called A, B, C, … as they come up. */
function diarized(segments: readonly HeardSegment[]): readonly object[] {
  const speakers: unknown[] = [];
  return segments.map(({ start, end, text, speaker }, index) => {
    if (!speakers.includes(speaker)) speakers.push(speaker);
    const label = speakerLabel(speakers.indexOf(speaker));
    return { type: 'transcript.text.segment', id: `seg_${index}`, start, end, text, speaker: label };
  });
}

/** Behind Z comes AA. */
function speakerLabel(index: number): string {
  const letter = String.fromCharCode(65 + (index % 26));
  return index < 26 ? letter : speakerLabel(Math.floor(index / 26) - 1) + letter;
}

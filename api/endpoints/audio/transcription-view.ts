import type { TranscriptionFormat } from '../../../shared/capabilities/transcription.ts';
import type { Frame } from '../../../shared/jobs/append.ts';
import type { View } from '../../replies/view.ts';
import type { TranscriptionViewOptions } from './parse-transcription.ts';
import { type Transcript, toSrt, toVtt } from './subtitles.ts';

/** Content types of the formats that are not JSON. */
const textTypes: Partial<Record<TranscriptionFormat, string>> = {
  text: 'text/plain; charset=utf-8',
  srt: 'application/x-subrip; charset=utf-8',
  vtt: 'text/vtt; charset=utf-8',
};

/**
 * The view of transcriptions and translations. Streamed: the vendor's events, then `transcript.text.done`; OpenAI's stream
 * has no `[DONE]` here. A held answer watched as a stream is only the last event. Held: JSON formats as the vendor sent
 * them; text, srt and vtt made here.
 */
export const transcriptionView: View<TranscriptionViewOptions> = {
  stream: () => (frame) => {
    if (frame.type === 'delta') return [`data: ${frame.text}`];
    return frame.type === 'end' ? [`data: ${doneEvent(frame.text)}`] : [];
  },
  heldFromEnd: true,
  held: (job, frames) => {
    const { text } = frames.at(-1) as Frame;
    const { format } = job.viewOptions;
    if (format === 'text') return `${transcriptOf(text).text}\n`;
    if (format === 'srt') return toSrt(transcriptOf(text));
    if (format === 'vtt') return toVtt(transcriptOf(text));
    return text;
  },
  heldStart: ({ viewOptions }) => (textTypes[viewOptions.format] === undefined ? { text: '', replaces: 0 } : undefined),
  contentType: (job) => textTypes[job.viewOptions.format],
};

interface DoneTranscript {
  readonly text: string;
  readonly languages?: unknown;
  readonly logprobs?: unknown;
  readonly usage?: { readonly type?: unknown } | null;
}

function transcriptOf(end: string): Transcript {
  return JSON.parse(end) as Transcript;
}

/**
 * Segments had their own events. Usage in seconds is omitted: OpenAI's event has token counts or nothing, and strictly typed
 * clients cannot parse another kind.
 */
function doneEvent(end: string): string {
  const { text, languages, logprobs, usage } = JSON.parse(end) as DoneTranscript;
  const counted = usage?.type === 'duration' ? undefined : (usage ?? undefined);
  return JSON.stringify({ type: 'transcript.text.done', text, languages, logprobs, usage: counted });
}

import type { TranscriptSegment } from '../../../shared/capabilities/transcription.ts';

/** Input of subtitles, as its vendor has sent it: the segments, or if there are none with a text, the text and duration (seconds). */
export interface Transcript {
  readonly text: string;
  readonly duration?: unknown;
  readonly segments?: unknown;
}

/** A cue: times in whole milliseconds, text without blank lines. */
interface Cue {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Formats a transcript as SubRip (`.srt`): numbered cues, times `hh:mm:ss,mmm`, a blank line after each. */
export function toSrt(transcript: Transcript): string {
  return cuesOf(transcript)
    .map((cue, index) => {
      // SubRip cannot escape its arrow; Whisper writes this shorter one.
      const text = cue.text.replaceAll('-->', '->');
      return `${index + 1}\n${clock(cue.start, ',')} --> ${clock(cue.end, ',')}\n${text}\n\n`;
    })
    .join('');
}

/** Formats a transcript as WebVTT (https://www.w3.org/TR/webvtt1/): times `hh:mm:ss.mmm`, `&`, `<` and `>` escaped. */
export function toVtt(transcript: Transcript): string {
  const cues = cuesOf(transcript).map(
    (cue) => `${clock(cue.start, '.')} --> ${clock(cue.end, '.')}\n${escapeVtt(cue.text)}\n\n`,
  );
  return `WEBVTT\n\n${cues.join('')}`;
}

/** Makes cues that never start before the previous one, nor end before they start, whatever the vendor's times. */
function cuesOf(transcript: Transcript): Cue[] {
  const cues: Cue[] = [];
  let latest = 0;
  for (const segment of segmentsOf(transcript)) {
    const shown = withoutBlankLines(segment.text);
    const start = Math.max(latest, milliseconds(segment.start));
    cues.push({ start, end: Math.max(start, milliseconds(segment.end)), text: shown });
    latest = start;
  }
  return cues;
}

/** The segments that have a text. The transcript is paid for: a vendor that has cut it into none, or into anything else, must not lose it. */
function segmentsOf({ text, duration, segments }: Transcript): readonly TranscriptSegment[] {
  const hasText = (segment: unknown): segment is TranscriptSegment => {
    const { text: said } = (segment ?? {}) as { readonly text?: unknown };
    return typeof said === 'string' && said.trim() !== '';
  };
  const given = Array.isArray(segments) ? segments.filter(hasText) : [];
  return given.length > 0 ? given : [{ start: 0, end: duration, text }].filter(hasText);
}

/** Maximum time with two digits of hours, in ms. */
const latestTime = 359_999_999;

function milliseconds(seconds: unknown): number {
  return typeof seconds === 'number' && Number.isFinite(seconds)
    ? Math.min(latestTime, Math.max(0, Math.round(seconds * 1000)))
    : 0;
}

/** A blank line would end a cue within its text. */
function withoutBlankLines(text: string): string {
  return text
    .split(/\r\n|\n|\r/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join('\n');
}

function clock(time: number, point: ',' | '.'): string {
  const two = (value: number): string => String(Math.floor(value)).padStart(2, '0');
  const seconds = `${two((time / 1000) % 60)}${point}${String(time % 1000).padStart(3, '0')}`;
  return `${two(time / 3_600_000)}:${two((time / 60_000) % 60)}:${seconds}`;
}

function escapeVtt(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

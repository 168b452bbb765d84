import { tokenLogprob } from '../chat/logprobs.ts';
import type { TimedText, Transcript } from './transcript.ts';
import type { TranscriptionRequest } from './transcription-request.ts';

/** A response that is not streamed. */
export interface TranscriptBody {
  contentType: string;
  body: string;
}

const TEXT = 'text/plain; charset=utf-8';

/** The transcript in the requested format. */
export function transcriptBody(transcript: Transcript, request: TranscriptionRequest): TranscriptBody {
  switch (request.format) {
    case 'text':
      return { contentType: TEXT, body: `${transcript.text}\n` };
    case 'srt':
      return { contentType: TEXT, body: toSrt(transcript.segments) };
    case 'vtt':
      return { contentType: TEXT, body: toVtt(transcript.segments) };
    case 'verbose_json':
      return { contentType: 'application/json', body: JSON.stringify(toVerbose(transcript, request)) };
    default: {
      const logprobs = request.logprobs ? { logprobs: transcriptLogprobs(transcript.tokens) } : {};
      const body = { text: transcript.text, ...logprobs, usage: durationUsage(transcript) };
      return { contentType: 'application/json', body: JSON.stringify(body) };
    }
  }
}

/** The tokens with the log probabilities of the sandbox. */
export function transcriptLogprobs(tokens: readonly string[]) {
  return tokens.map((token) => ({
    token,
    logprob: tokenLogprob(token, 0).logprob,
    bytes: [...Buffer.from(token)],
  }));
}

function durationUsage({ seconds }: Transcript) {
  // OpenAI bills every started second.
  return { type: 'duration', seconds: Math.ceil(seconds) };
}

function toVerbose(transcript: Transcript, request: TranscriptionRequest) {
  const { text, seconds, segments, words } = transcript;
  return {
    task: request.isTranslation ? 'translate' : 'transcribe',
    language: languageName(request),
    duration: seconds,
    text,
    ...(request.granularities.includes('word') && {
      words: words.map(({ text: word, start, end }) => ({ word, start, end })),
    }),
    ...(request.granularities.includes('segment') && {
      segments: segments.map((segment, id) => toSegment(segment, id, request.temperature)),
    }),
    usage: durationUsage(transcript),
  };
}

function toSegment({ text, start, end }: TimedText, id: number, temperature: number) {
  return {
    id,
    seek: 0,
    start,
    end,
    text: ` ${text}`,
    // Numbers instead of tokens: the sandbox's tokenizer has no vocabulary.
    tokens: Array.from(text, (character) => character.codePointAt(0)),
    temperature,
    avg_logprob: -0.1,
    compression_ratio: 1,
    no_speech_prob: 0.01,
  };
}

/** Whisper names languages in English, in lower case. */
function languageName({ isTranslation, language }: TranscriptionRequest): string {
  if (isTranslation || language === undefined) return 'english';
  return (new Intl.DisplayNames(['en'], { type: 'language' }).of(language) ?? language).toLowerCase();
}

function toSrt(segments: readonly TimedText[]): string {
  return segments
    .map(({ text, start, end }, index) => `${index + 1}\n${clock(start, ',')} --> ${clock(end, ',')}\n${text}\n\n`)
    .join('');
}

function toVtt(segments: readonly TimedText[]): string {
  const cues = segments.map(({ text, start, end }) => `${clock(start, '.')} --> ${clock(end, '.')}\n${text}\n\n`);
  return `WEBVTT\n\n${cues.join('')}`;
}

/** Hours, minutes, seconds and milliseconds. */
function clock(seconds: number, mark: string): string {
  const [time, fraction] = new Date(Math.round(seconds * 1000)).toISOString().slice(11, -1).split('.');
  return `${time}${mark}${fraction}`;
}

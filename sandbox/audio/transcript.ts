import { splitTokens } from '../tokens.ts';
import type { AudioFacts } from './audio-step.ts';

/** A word or a segment of a transcript with its time in seconds. */
export interface TimedText {
  text: string;
  start: number;
  end: number;
}

/** The sandbox's transcript: a description of the file, spread evenly over its duration. */
export interface Transcript {
  text: string;
  seconds: number;
  /** Joined by spaces they give the text. */
  segments: TimedText[];
  /** Without punctuation. */
  words: TimedText[];
  tokens: string[];
}

/** Further contents of the transcript that a request asks for. */
export interface TranscriptWishes {
  isTranslation: boolean;
  /** ISO 639-1. */
  language: string | undefined;
  prompt: string | undefined;
}

/** Describes the audio as text. */
export function composeTranscript(facts: AudioFacts, wishes: TranscriptWishes): Transcript {
  const seconds = Math.round(facts.seconds * 1000) / 1000;
  const sentences = [describe(facts)];
  if (wishes.isTranslation) sentences.push('The sandbox translated this into English.');
  if (wishes.language !== undefined) sentences.push(`Its language is said to be ${wishes.language}.`);
  const hint = wishes.prompt?.trim().replace(/\s+/g, ' ') ?? '';
  if (hint !== '') sentences.push(`The hint was: ${hint}`);
  const text = sentences.join(' ');
  return {
    text,
    seconds,
    // A clause ends after a punctuation mark and a space: 2.35 does not end one.
    segments: spread(text.split(/(?<=[,.]) /), seconds),
    words: spread(text.split(/\s+/), seconds).map((word) => ({ ...word, text: withoutMarks(word.text) })),
    tokens: splitTokens(text),
  };
}

function describe({ seconds, format, sampleRate, channels }: AudioFacts): string {
  const parts = [`Audio of ${seconds.toFixed(2)} seconds`, format];
  if (sampleRate !== undefined) parts.push(`${sampleRate} Hz`);
  if (channels !== undefined) parts.push(['', 'mono', 'stereo'][channels] || `${channels} channels`);
  return `${parts.join(', ')}.`;
}

/** Gives each text a share of the time proportional to its length; together they cover all of it. */
function spread(texts: string[], seconds: number): TimedText[] {
  const total = texts.reduce((sum, text) => sum + text.length, 0);
  let before = 0;
  return texts.map((text) => {
    const start = toMilliseconds((before / total) * seconds);
    before += text.length;
    return { text, start, end: toMilliseconds((before / total) * seconds) };
  });
}

function toMilliseconds(seconds: number): number {
  return Math.round(seconds * 1000) / 1000;
}

function withoutMarks(word: string): string {
  return word.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, '') || word;
}

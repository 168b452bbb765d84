import { createHash } from 'node:crypto';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { Mp3Encoder } from '@breezystack/lamejs';
import { FLAC_BLOCK_SAMPLES, flacFrame, flacHead } from './flac-encoder.ts';
import { countSamples, SAMPLE_RATE, synthesize, type Utterance } from './synthesizer.ts';

/** The formats the sandbox supports. */
export const speechFormats = ['mp3', 'wav', 'flac', 'pcm'] as const;
/** A format the sandbox supports. */
export type SpeechFormat = (typeof speechFormats)[number];

/** Their content types, as OpenAI returns them. */
export const speechTypes: Readonly<Record<SpeechFormat, string>> = {
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
  flac: 'audio/flac',
  pcm: 'audio/pcm',
};

const MP3_KILOBITS = 64;

/** The pieces of an audio file in one format; empty if nothing has to be written. */
interface Encoder {
  head(): Buffer;
  encode(samples: Int16Array, index: number): Buffer;
  end(): Buffer;
}

/** Synthesizes the text in pieces of about a fifth of a second, generated on demand. Other calls run in between. */
export async function* speak(utterance: Utterance, format: SpeechFormat): AsyncGenerator<Buffer> {
  const encoder = encoders[format](format === 'flac' ? await hashSamples(utterance) : undefined, utterance);
  const head = encoder.head();
  if (head.length > 0) yield head;
  let index = 0;
  for (const samples of inBlocks(synthesize(utterance))) {
    await yieldToEventLoop();
    const piece = encoder.encode(samples, index);
    index += 1;
    if (piece.length > 0) yield piece;
  }
  const end = encoder.end();
  if (end.length > 0) yield end;
}

const nothing = Buffer.alloc(0);

const encoders: Readonly<Record<SpeechFormat, (md5: Buffer | undefined, utterance: Utterance) => Encoder>> = {
  pcm: () => ({ head: () => nothing, encode: toBytes, end: () => nothing }),
  wav: (_, utterance) => ({ head: () => wavHead(countSamples(utterance)), encode: toBytes, end: () => nothing }),
  flac: (md5, utterance) => ({
    head: () => flacHead(countSamples(utterance), md5 ?? Buffer.alloc(16)),
    encode: flacFrame,
    end: () => nothing,
  }),
  mp3: () => {
    const encoder = new Mp3Encoder(1, SAMPLE_RATE, MP3_KILOBITS);
    return {
      head: () => nothing,
      encode: (samples) => Buffer.from(encoder.encodeBuffer(samples)),
      end: () => Buffer.from(encoder.flush()),
    };
  },
};

/** FLAC puts the hash of the samples before them, so they are generated twice rather than stored. */
async function hashSamples(utterance: Utterance): Promise<Buffer> {
  const hash = createHash('md5');
  for (const samples of inBlocks(synthesize(utterance))) {
    await yieldToEventLoop();
    hash.update(toBytes(samples));
  }
  return hash.digest();
}

/** The same samples in blocks of equal length; the last may be shorter. */
function* inBlocks(sounds: Iterable<Int16Array>): Generator<Int16Array> {
  let block = new Int16Array(FLAC_BLOCK_SAMPLES);
  let filled = 0;
  for (const sound of sounds) {
    for (let start = 0; start < sound.length; ) {
      const part = sound.subarray(start, start + block.length - filled);
      block.set(part, filled);
      filled += part.length;
      start += part.length;
      if (filled < block.length) continue;
      yield block;
      block = new Int16Array(FLAC_BLOCK_SAMPLES);
      filled = 0;
    }
  }
  if (filled > 0) yield block.subarray(0, filled);
}

/** 16-bit little-endian, regardless of this machine's byte order. */
function toBytes(samples: Int16Array): Buffer {
  const bytes = Buffer.alloc(samples.length * 2);
  for (let index = 0; index < samples.length; index += 1) bytes.writeInt16LE(samples[index] as number, index * 2);
  return bytes;
}

function wavHead(samples: number): Buffer {
  const head = Buffer.alloc(44);
  head.write('RIFF', 0, 'latin1');
  head.writeUInt32LE(36 + samples * 2, 4);
  head.write('WAVEfmt ', 8, 'latin1');
  head.writeUInt32LE(16, 16);
  // PCM, one channel.
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(SAMPLE_RATE, 24);
  head.writeUInt32LE(SAMPLE_RATE * 2, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write('data', 36, 'latin1');
  head.writeUInt32LE(samples * 2, 40);
  return head;
}

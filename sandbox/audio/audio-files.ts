import { type AudioParser, skip, take } from './audio-step.ts';

const ALL = Number.POSITIVE_INFINITY;

/** WAV: RIFF chunks (https://www.mmsp.ece.mcgill.ca/Documents/AudioFormats/WAVE/WAVE.html). */
export function* parseWav(): AudioParser {
  yield* skip(12);
  let format: { channels: number; sampleRate: number; bytesPerSecond: number } | undefined;
  for (;;) {
    const header = yield* take(8);
    if (header.length < 8) return undefined;
    const name = header.toString('latin1', 0, 4);
    const size = header.readUInt32LE(4);
    if (name === 'data' && format !== undefined) {
      // A writer that could not seek back leaves the size at zero or at its maximum.
      const bytes = yield* skip(size === 0 ? ALL : size);
      const { channels, sampleRate, bytesPerSecond } = format;
      return { format: 'WAV', seconds: bytes / bytesPerSecond, sampleRate, channels };
    }
    const content = yield* take(name === 'fmt ' ? Math.min(16, size) : 0);
    if (content.length === 16) {
      const [channels, sampleRate] = [content.readUInt16LE(2), content.readUInt32LE(4)];
      format = { channels, sampleRate, bytesPerSecond: content.readUInt32LE(8) };
    }
    // Chunks begin at even offsets.
    yield* skip(size - content.length + (size % 2));
  }
}

/** FLAC: its STREAMINFO block comes first (RFC 9639, section 8.2). */
export function* parseFlac(): AudioParser {
  const start = yield* take(8 + 18);
  if (start.length < 26 || ((start[4] as number) & 0x7f) !== 0) return undefined;
  const rates = start.readUInt32BE(18);
  const sampleRate = rates >>> 12;
  const samples = ((start[21] as number) & 0x0f) * 2 ** 32 + start.readUInt32BE(22);
  return { format: 'FLAC', seconds: samples / sampleRate, sampleRate, channels: ((rates >>> 9) & 7) + 1 };
}

interface Mp3Frame {
  bytes: number;
  samples: number;
  sampleRate: number;
  channels: number;
  /** Offset, from the frame's start, at which a frame without sound describes the file. */
  tagOffset: number;
}

/** Kilobits per second by MPEG version (1; 2 and 2.5), layer (1, 2, 3) and index. */
const bitRates = [
  [
    [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
    [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
    [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  ],
  [
    [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
    [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
    [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
  ],
];
const sampleRates = [44_100, 48_000, 32_000];

/** An MPEG audio frame's header (http://www.mp3-tech.org/programmer/frame_header.html). */
function readMp3Frame(header: Buffer): Mp3Frame | undefined {
  if (header.length < 4) return undefined;
  const bits = header.readUInt32BE(0);
  const version = (bits >>> 19) & 3;
  const layer = 4 - ((bits >>> 17) & 3);
  const isFirstVersion = version === 3;
  const kilobits = bitRates[isFirstVersion ? 0 : 1]?.[layer - 1]?.[((bits >>> 12) & 15) - 1];
  const fullRate = sampleRates[(bits >>> 10) & 3];
  if (bits >>> 21 !== 0x7ff || version === 1 || kilobits === undefined || fullRate === undefined) return undefined;
  const sampleRate = fullRate / (isFirstVersion ? 1 : version === 2 ? 2 : 4);
  const samples = layer === 1 ? 384 : layer === 3 && !isFirstVersion ? 576 : 1152;
  const slot = layer === 1 ? 4 : 1;
  const slots = Math.floor((samples * kilobits * 125) / sampleRate / slot) + ((bits >>> 9) & 1);
  const channels = ((bits >>> 6) & 3) === 3 ? 1 : 2;
  const sideInformation = isFirstVersion ? (channels === 1 ? 17 : 32) : channels === 1 ? 9 : 17;
  return { bytes: slots * slot, samples, sampleRate, channels, tagOffset: 4 + sideInformation };
}

/** Maximum number of bytes between two frames that may be something else before the file is rejected. */
const MAXIMUM_JUNK = 65_536;

/** MP3: every frame is counted, so that variable bit rates give the right duration. */
export function* parseMp3(): AudioParser {
  let samples = 0;
  let first: Mp3Frame | undefined;
  let junk = 0;
  let header = yield* take(4);
  while (header.length === 4) {
    const frame = readMp3Frame(header);
    if (header.toString('latin1', 0, 3) === 'ID3') {
      const tag = yield* take(6);
      if (tag.length === 6) yield* skip(tag.subarray(2).reduce((size, byte) => size * 128 + (byte & 0x7f), 0));
      header = yield* take(4);
    } else if (frame === undefined) {
      junk += 1;
      if (junk > (first === undefined ? 0 : MAXIMUM_JUNK)) break;
      header = Buffer.concat([header.subarray(1), yield* take(1)]);
    } else {
      const start = yield* take(frame.tagOffset);
      const isTag = first === undefined && /Xing|Info/.test(start.toString('latin1', frame.tagOffset - 4));
      const rest = frame.bytes - 4 - start.length;
      // A truncated frame does not count.
      const isWhole = (yield* skip(rest)) === rest;
      if (isWhole && !isTag) samples += frame.samples;
      first ??= frame;
      header = yield* take(4);
    }
  }
  if (first === undefined) return undefined;
  return { format: 'MP3', seconds: samples / first.sampleRate, sampleRate: first.sampleRate, channels: first.channels };
}

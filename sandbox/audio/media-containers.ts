import { type AudioFacts, type AudioParser, type Reading, skip, take } from './audio-step.ts';

const HEAD_BYTES = 64;

/** Ogg: pages, each with the position of its end (RFC 3533); Opus (RFC 7845) and Vorbis identify themselves in the first. */
export function* parseOgg(): AudioParser {
  let stream: { codec: string; sampleRate: number; channels: number; unit: number; skipped: number } | undefined;
  let position = 0;
  for (;;) {
    const header = yield* take(27);
    if (header.length < 27 || header.toString('latin1', 0, 4) !== 'OggS') break;
    const lacing = yield* take(header[26] as number);
    const size = lacing.reduce((sum, length) => sum + length, 0);
    const granule = header.readBigInt64LE(6);
    const start = yield* take(stream === undefined ? Math.min(HEAD_BYTES, size) : 0);
    stream ??= readOggStream(start);
    if (stream === undefined) return undefined;
    if ((yield* skip(size - start.length)) < size - start.length) break;
    // -1: no packet ends in this page.
    if (granule >= 0n) position = Number(granule);
  }
  if (stream === undefined) return undefined;
  const { codec, sampleRate, channels, unit, skipped } = stream;
  return { format: `Ogg ${codec}`, seconds: (position - skipped) / unit, sampleRate, channels };
}

function readOggStream(start: Buffer) {
  if (start.length >= 19 && start.toString('latin1', 0, 8) === 'OpusHead') {
    const [channels, skipped] = [start[9] as number, start.readUInt16LE(10)];
    return { codec: 'Opus', channels, skipped, sampleRate: 48_000, unit: 48_000 };
  }
  if (start.length >= 16 && start.toString('latin1', 0, 7) === '\x01vorbis') {
    const sampleRate = start.readUInt32LE(12);
    return { codec: 'Vorbis', channels: start[11] as number, skipped: 0, sampleRate, unit: sampleRate };
  }
  return undefined;
}

/** MP4 boxes whose content is needed. */
const openBoxes = new Set(['moov', 'trak', 'mdia', 'minf', 'stbl', 'mvex']);
const audioEntries = new Set(['mp4a', 'Opus', 'fLaC', 'alac', 'ac-3']);

/** MP4 and M4A: the duration of `mvhd`, or of `mehd` in a fragmented file (ISO/IEC 14496-12). */
export function* parseMp4(): AudioParser {
  const facts: AudioFacts = { format: 'MP4', seconds: 0, sampleRate: undefined, channels: undefined };
  let timeScale = 0;
  for (;;) {
    const header = yield* take(8);
    if (header.length < 8) return timeScale === 0 ? undefined : facts;
    const name = header.toString('latin1', 4, 8);
    const long = yield* take(header.readUInt32BE(0) === 1 ? 8 : 0);
    if (openBoxes.has(name)) continue;
    const whole = long.length === 8 ? Number(long.readBigUInt64BE(0)) : header.readUInt32BE(0);
    // Size zero: the box extends to the end of the file.
    const size = whole === 0 ? Number.POSITIVE_INFINITY : Math.max(0, whole - 8 - long.length);
    const content = yield* take(['mvhd', 'mehd', 'stsd'].includes(name) ? Math.min(HEAD_BYTES, size) : 0);
    if (name === 'mvhd' && content.length >= 32) {
      const isLong = content[0] === 1;
      timeScale = content.readUInt32BE(isLong ? 20 : 12);
      const duration = isLong ? Number(content.readBigUInt64BE(24)) : content.readUInt32BE(16);
      facts.seconds = duration / timeScale;
    } else if (name === 'mehd' && content.length >= 8 && timeScale > 0) {
      const isLong = content[0] === 1 && content.length >= 12;
      facts.seconds = (isLong ? Number(content.readBigUInt64BE(4)) : content.readUInt32BE(4)) / timeScale;
    } else if (name === 'stsd' && content.length >= 44 && audioEntries.has(content.toString('latin1', 12, 16))) {
      facts.channels = content.readUInt16BE(32);
      facts.sampleRate = content.readUInt16BE(40);
    }
    yield* skip(size - content.length);
  }
}

/** Matroska elements whose content is needed: Segment, Info, Tracks, TrackEntry, Audio, Cluster, BlockGroup. */
const openElements = new Set([0x18538067, 0x1549a966, 0x1654ae6b, 0xae, 0xe1, 0x1f43b675, 0xa0]);
const TIMESTAMP_SCALE = 0x2ad7b1;
const DURATION = 0x4489;
const SAMPLING_FREQUENCY = 0xb5;
const CHANNELS = 0x9f;
const CLUSTER_TIMESTAMP = 0xe7;
const SIMPLE_BLOCK = 0xa3;
const BLOCK = 0xa1;
const EBML_HEADER = 0x1a45dfa3;
const smallElements = new Set([TIMESTAMP_SCALE, DURATION, SAMPLING_FREQUENCY, CHANNELS, CLUSTER_TIMESTAMP]);

/** WebM and Matroska (RFC 9559). Browser recordings have no duration: then the time of the last block counts. */
export function* parseWebm(): AudioParser {
  let scale = 1_000_000;
  let duration: number | undefined;
  let cluster = 0;
  let last = 0;
  const facts: AudioFacts = { format: 'WebM', seconds: 0, sampleRate: undefined, channels: undefined };
  for (let isFirst = true; ; isFirst = false) {
    const id = yield* takeVariable(false);
    const size = yield* takeVariable(true);
    if (id === undefined || size === undefined || (isFirst && id !== EBML_HEADER)) break;
    if (openElements.has(id)) continue;
    const isBlock = id === SIMPLE_BLOCK || id === BLOCK;
    const content = yield* take(isBlock || smallElements.has(id) ? Math.min(8, size) : 0);
    if (isBlock) last = Math.max(last, cluster + (content.length >= 4 ? content.readInt16BE(1) : 0));
    else if (id === TIMESTAMP_SCALE) scale = readUnsigned(content);
    else if (id === DURATION) duration = readFloat(content);
    else if (id === SAMPLING_FREQUENCY) facts.sampleRate = readFloat(content);
    else if (id === CHANNELS) facts.channels = readUnsigned(content);
    else if (id === CLUSTER_TIMESTAMP) cluster = readUnsigned(content);
    yield* skip(size - content.length);
  }
  facts.seconds = ((duration ?? last) * scale) / 1e9;
  return facts;
}

/** A number whose first byte encodes its length; an element's id keeps that marker, a size does not. */
function* takeVariable(isSize: boolean): Reading<number | undefined> {
  const first = (yield* take(1))[0];
  if (first === undefined || first === 0) return undefined;
  const length = Math.clz32(first) - 24;
  const rest = yield* take(length);
  if (rest.length < length) return undefined;
  let value = isSize ? first & (0x7f >> length) : first;
  let isUnknown = isSize && value === 0x7f >> length;
  for (const byte of rest) {
    value = value * 256 + byte;
    isUnknown &&= byte === 0xff;
  }
  return isUnknown ? Number.POSITIVE_INFINITY : value;
}

function readUnsigned(bytes: Buffer): number {
  return bytes.length === 0 || bytes.length > 6 ? 0 : bytes.readUIntBE(0, bytes.length);
}

function readFloat(bytes: Buffer): number {
  if (bytes.length === 4) return bytes.readFloatBE(0);
  return bytes.length === 8 ? bytes.readDoubleBE(0) : 0;
}

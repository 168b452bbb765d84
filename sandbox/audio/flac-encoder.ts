import { SAMPLE_RATE } from './synthesizer.ts';

/** Samples of every block except the last. */
export const FLAC_BLOCK_SAMPLES = 4608;
/** Codes of a frame's header for 4608 samples, for a size at the header's end, for 24 kHz, and for one channel of 16 bits. */
const BLOCK_CODE = 5;
const OTHER_BLOCK_CODE = 7;
const RATE_CODE = 7;
const MONO_16_BITS = 0x08;
/** Subframe types: verbatim, and the fixed predictor of order 2, both shifted into position. */
const VERBATIM = 0x02;
const FIXED_ORDER_2 = 0x14;
/** A Rice parameter of 15 has another meaning. */
const MAXIMUM_RICE = 14;

/**
 * A FLAC stream's head: the marker and STREAMINFO (RFC 9639, section 8.2).
 * @param md5 of all samples as 16-bit little-endian numbers.
 */
export function flacHead(samples: number, md5: Buffer): Buffer {
  const head = Buffer.alloc(42);
  head.write('fLaC', 'latin1');
  // The last (only) metadata block, of type 0 and 34 bytes.
  head.writeUInt32BE(0x80000022, 4);
  head.writeUInt16BE(FLAC_BLOCK_SAMPLES, 8);
  head.writeUInt16BE(FLAC_BLOCK_SAMPLES, 10);
  // Sizes of frames (14 to 17) stay unknown: zero. Then 20 bits rate, 3 channels - 1, 5 bits per sample - 1, 36 samples.
  head.writeUInt32BE(SAMPLE_RATE * 4096 + 15 * 16 + Math.floor(samples / 2 ** 32), 18);
  head.writeUInt32BE(samples % 2 ** 32, 22);
  md5.copy(head, 26);
  return head;
}

/**
 * One frame of one channel (RFC 9639, section 9).
 * @param index the frame's number, from 0.
 */
export function flacFrame(samples: Int16Array, index: number): Buffer {
  const bits = new BitWriter(32 + samples.length * 3);
  const isFull = samples.length === FLAC_BLOCK_SAMPLES;
  bits.write(0xfff8, 16);
  bits.write((isFull ? BLOCK_CODE : OTHER_BLOCK_CODE) * 16 + RATE_CODE, 8);
  bits.write(MONO_16_BITS, 8);
  for (const byte of Buffer.from(String.fromCodePoint(index))) bits.write(byte, 8);
  if (!isFull) bits.write(samples.length - 1, 16);
  bits.write(crc8(bits.bytes()), 8);
  writeSubframe(bits, samples);
  bits.align();
  bits.write(crc16(bits.bytes()), 16);
  return bits.bytes();
}

function writeSubframe(bits: BitWriter, samples: Int16Array): void {
  const residuals = predict(samples);
  const parameter = riceParameter(residuals);
  if (samples.length < 3 || riceBits(residuals, parameter) > samples.length * 16) {
    bits.write(VERBATIM, 8);
    for (const sample of samples) bits.write(sample & 0xffff, 16);
    return;
  }
  bits.write(FIXED_ORDER_2, 8);
  for (const sample of samples.subarray(0, 2)) bits.write(sample & 0xffff, 16);
  // Rice coding with parameters of four bits, one partition.
  bits.write(0, 6);
  bits.write(parameter, 4);
  for (const residual of residuals) {
    bits.writeUnary(residual >>> parameter);
    bits.write(residual & ((1 << parameter) - 1), parameter);
  }
}

/** Residuals of a straight line through the last two samples, folded to positive numbers: 0, -1, 1, -2 … */
function predict(samples: Int16Array): Int32Array {
  const residuals = new Int32Array(Math.max(0, samples.length - 2));
  for (let index = 0; index < residuals.length; index += 1) {
    const [first, second, actual] = [samples[index], samples[index + 1], samples[index + 2]] as unknown as number[];
    const missed = (actual as number) - 2 * (second as number) + (first as number);
    residuals[index] = (missed << 1) ^ (missed >> 31);
  }
  return residuals;
}

function riceParameter(residuals: Int32Array): number {
  const mean = residuals.reduce((sum, residual) => sum + residual, 0) / Math.max(1, residuals.length);
  return Math.min(MAXIMUM_RICE, Math.max(0, Math.floor(Math.log2(mean + 1))));
}

function riceBits(residuals: Int32Array, parameter: number): number {
  return residuals.reduce((sum, residual) => sum + (residual >>> parameter) + 1 + parameter, 0);
}

/** Writes bits, the highest of each byte first. */
class BitWriter {
  readonly #bytes: Buffer;
  #length = 0;
  #current = 0;
  #free = 8;

  constructor(capacity: number) {
    this.#bytes = Buffer.alloc(capacity);
  }

  write(value: number, count: number): void {
    for (let left = count; left > 0; ) {
      const part = Math.min(left, this.#free);
      left -= part;
      this.#current = (this.#current << part) | ((value >>> left) & ((1 << part) - 1));
      this.#free -= part;
      if (this.#free === 0) this.#flush();
    }
  }

  /** Writes this many zeros and a one. */
  writeUnary(zeros: number): void {
    for (let left = zeros; left > 0; left -= 24) this.write(0, Math.min(24, left));
    this.write(1, 1);
  }

  /** Fills the last byte with zeros. */
  align(): void {
    if (this.#free < 8) this.write(0, this.#free);
  }

  /** The complete bytes so far. */
  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  #flush(): void {
    this.#bytes[this.#length] = this.#current;
    this.#length += 1;
    this.#current = 0;
    this.#free = 8;
  }
}

/** The table of a CRC of this many bits, highest bit first. */
function crcTable(polynomial: number, bits: number): Uint16Array {
  return Uint16Array.from({ length: 256 }, (_, byte) => {
    let value = byte << (bits - 8);
    for (let step = 0; step < 8; step += 1) value = value & (1 << (bits - 1)) ? (value << 1) ^ polynomial : value << 1;
    return value & (2 ** bits - 1);
  });
}

const table8 = crcTable(0x07, 8);
const table16 = crcTable(0x8005, 16);

function crc8(bytes: Buffer): number {
  return bytes.reduce((value, byte) => table8[value ^ byte] as number, 0);
}

function crc16(bytes: Buffer): number {
  return bytes.reduce((value, byte) => ((value << 8) & 0xff00) ^ (table16[(value >>> 8) ^ byte] as number), 0);
}

import type { Colour } from './colour.ts';

/** Writes the bits of a VP8L stream, lowest first. */
class BitWriter {
  readonly #bytes: number[] = [];
  #bits = 0;
  #count = 0;

  write(value: number, count: number): void {
    this.#bits += value * 2 ** this.#count;
    this.#count += count;
    for (; this.#count >= 8; this.#count -= 8) {
      this.#bytes.push(this.#bits % 256);
      this.#bits = Math.floor(this.#bits / 256);
    }
  }

  end(): Buffer {
    if (this.#count > 0) this.write(0, 8 - this.#count);
    return Buffer.from(this.#bytes);
  }
}

/** A prefix code of symbols with lengths of 8 or 9 bits: `short` symbols of 8, and the rest of 9, which makes it complete. */
interface PrefixCode {
  readonly symbols: number;
  readonly short: number;
}

/** Green, which here is the palette index, and lengths of copies. */
const greenCode: PrefixCode = { symbols: 280, short: 232 };
const byteCode: PrefixCode = { symbols: 256, short: 256 };

/** Of the code lengths, only 8 and 9 are used, with one bit each: they are the 12th and 13th in the format's order. */
function writeCode(bits: BitWriter, { symbols, short }: PrefixCode): void {
  bits.write(0, 1);
  bits.write(13 - 4, 4);
  for (let index = 1; index <= 13; index += 1) bits.write(index >= 12 ? 1 : 0, 3);
  bits.write(0, 1);
  for (let symbol = 0; symbol < symbols; symbol += 1) bits.write(symbol < short ? 0 : 1, 1);
}

/** A code of the symbol 0 alone, which takes no bits. */
function writeEmptyCode(bits: BitWriter): void {
  bits.write(0b0001, 4);
}

/** A code of the symbols 0 and 1, of one bit each. */
function writeBinaryCode(bits: BitWriter): void {
  bits.write(0b0011, 4);
  bits.write(1, 8);
}

function writeSymbol(bits: BitWriter, symbol: number, { short }: PrefixCode): void {
  // Prefix codes count up from the shorter ones, and are written from their highest bit.
  const [code, length] = symbol < short ? [symbol, 8] : [2 * short + symbol - short, 9];
  for (let bit = length - 1; bit >= 0; bit -= 1) bits.write((code >> bit) & 1, 1);
}

const maxCopy = 4096;

/** A copy of earlier pixels: from the row above, or of the one to the left. */
function writeCopy(bits: BitWriter, length: number, isAbove: boolean): void {
  const value = length - 1;
  const highest = value < 2 ? 0 : 31 - Math.clz32(value);
  const extra = Math.max(0, highest - 1);
  const prefix = value < 2 ? value : 2 * highest + ((value >> extra) & 1);
  writeSymbol(bits, 256 + prefix, greenCode);
  bits.write(value & ((1 << extra) - 1), extra);
  bits.write(isAbove ? 0 : 1, 1);
}

/** The number of pixels from `from` on that equal those at a distance before them. */
function repeats(pixels: Uint8Array, from: number, distance: number): number {
  if (from < distance) return 0;
  let end = from;
  const limit = Math.min(pixels.length, from + maxCopy);
  while (end < limit && pixels[end] === pixels[end - distance]) end += 1;
  return end - from;
}

function writePixels(bits: BitWriter, pixels: Uint8Array, width: number): void {
  for (let at = 0; at < pixels.length; ) {
    const above = repeats(pixels, at, width);
    const left = repeats(pixels, at, 1);
    const length = Math.max(above, left);
    if (length >= 3) writeCopy(bits, length, above >= left);
    else writeSymbol(bits, pixels[at] as number, greenCode);
    at += length >= 3 ? length : 1;
  }
}

/** Each colour as its difference from the previous one, from 0 to 255. */
function writePalette(bits: BitWriter, palette: readonly Colour[], transparent: boolean): void {
  bits.write(0, 1);
  for (const code of [greenCode, byteCode, byteCode, byteCode]) writeCode(bits, code);
  writeEmptyCode(bits);
  let before = [0, 0, 0, 0];
  for (let index = 0; index < 16; index += 1) {
    const [red, green, blue] = palette[index] ?? [0, 0, 0];
    const now = [green, red, blue, transparent && index === 0 ? 0 : 255];
    now.forEach((value, part) => {
      writeSymbol(bits, (value - (before[part] as number) + 256) % 256, part === 0 ? greenCode : byteCode);
    });
    before = now;
  }
}

/** Two pixels of 4 bits per byte, the left one in the lower bits; each row starts with a new byte. */
function pack(pixels: Uint8Array, width: number, height: number): Uint8Array {
  const packedWidth = Math.ceil(width / 2);
  const packed = new Uint8Array(packedWidth * height);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const at = y * packedWidth + (x >> 1);
      packed[at] = (packed[at] as number) | ((pixels[y * width + x] as number) << (4 * (x & 1)));
    }
  }
  return packed;
}

/**
 * An image of at most 16 colours as lossless WebP
 * (https://developers.google.com/speed/webp/docs/webp_lossless_bitstream_specification).
 * @param pixels palette indexes, row by row
 * @param transparent whether the first colour is transparent.
 */
export function encodeWebp(
  pixels: Uint8Array,
  { width, height }: { readonly width: number; readonly height: number },
  palette: readonly Colour[],
  transparent: boolean,
): Buffer {
  const bits = new BitWriter();
  bits.write(0x2f, 8);
  bits.write(width - 1, 14);
  bits.write(height - 1, 14);
  bits.write(transparent ? 1 : 0, 1);
  bits.write(0, 3);
  // One transform, by a palette of 16, and no other.
  bits.write(0b111, 3);
  bits.write(15, 8);
  writePalette(bits, palette, transparent);
  bits.write(0, 1);
  // Neither a colour cache nor more than one set of codes.
  bits.write(0b00, 2);
  writeCode(bits, greenCode);
  for (let part = 0; part < 3; part += 1) writeEmptyCode(bits);
  writeBinaryCode(bits);
  writePixels(bits, pack(pixels, width, height), Math.ceil(width / 2));
  return riff(bits.end());
}

function riff(stream: Buffer): Buffer {
  const padding = stream.length % 2;
  const header = Buffer.alloc(20);
  header.write('RIFF', 0);
  header.writeUInt32LE(12 + stream.length + padding, 4);
  header.write('WEBPVP8L', 8);
  header.writeUInt32LE(stream.length, 16);
  return Buffer.concat([header, stream, Buffer.alloc(padding)]);
}

import { crc32, deflateSync } from 'node:zlib';
import { CHARACTER_WIDTH, GLYPH_HEIGHT, glyphOf } from './bitmap-font.ts';
import type { Colour } from './colour.ts';
import { encodeWebp } from './webp.ts';

/** An image of at most 16 flat colours, each identified by its index in the palette; 0 is the background. */
export class Canvas {
  readonly width: number;
  readonly height: number;
  /** One byte per pixel, row by row. */
  readonly #pixels: Uint8Array;

  constructor(width: number, height: number) {
    this.width = width;
    this.height = height;
    this.#pixels = new Uint8Array(width * height);
  }

  fill(x: number, y: number, width: number, height: number, colour: number): void {
    const end = Math.min(this.width, x + width);
    const bottom = Math.min(this.height, y + height);
    for (let row = y; row < bottom; row += 1) {
      this.#pixels.fill(colour, row * this.width + x, row * this.width + end);
    }
  }

  /** Writes one line, each dot of the font `scale` pixels wide and high. */
  write(text: string, x: number, y: number, scale: number, colour: number): void {
    let left = x;
    for (const character of text) {
      for (const [index, column] of glyphOf(character).entries()) {
        for (let row = 0; row < GLYPH_HEIGHT; row += 1) {
          if ((column >> row) & 1) this.fill(left + index * scale, y + row * scale, scale, scale, colour);
        }
      }
      left += CHARACTER_WIDTH * scale;
    }
  }

  /** Copies another image of the same colours onto this one; it must fit. */
  paste(image: Canvas, x: number, y: number): void {
    for (let row = 0; row < image.height; row += 1) {
      const start = row * image.width;
      this.#pixels.set(image.#pixels.subarray(start, start + image.width), (y + row) * this.width + x);
    }
  }

  /** Pixelates the image: squares of this many pixels in the colour of their corner. */
  coarsen(square: number): void {
    for (let y = 0; y < this.height; y += square) {
      for (let x = 0; x < this.width; x += square) {
        this.fill(x, y, square, square, this.#pixels[y * this.width + x] as number);
      }
    }
  }

  /**
   * The image as PNG with a palette, four bits per pixel (https://www.w3.org/TR/png-3/).
   * @param transparent whether the background is transparent.
   */
  toPng(palette: readonly Colour[], transparent: boolean): Buffer {
    const header = Buffer.alloc(13);
    header.writeUInt32BE(this.width, 0);
    header.writeUInt32BE(this.height, 4);
    header.set([4, 3, 0, 0, 0], 8);
    return Buffer.concat([
      Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
      chunk('IHDR', header),
      chunk('PLTE', Buffer.from(palette.flat())),
      ...(transparent ? [chunk('tRNS', Buffer.from([0]))] : []),
      chunk('IDAT', deflateSync(this.#packRows(), { level: 1 })),
      chunk('IEND', Buffer.alloc(0)),
    ]);
  }

  /**
   * The image as lossless WebP.
   * @param transparent whether the background is transparent.
   */
  toWebp(palette: readonly Colour[], transparent: boolean): Buffer {
    return encodeWebp(this.#pixels, this, palette, transparent);
  }

  /**
   * The image as a video frame: a plane of luma, then two of chroma at half the width and height, in the limited range (ITU-R
   * BT.709). Width and height must be even.
   */
  toYuv(palette: readonly Colour[]): Uint8Array {
    const { width, height } = this;
    // Loops over millions of pixels: everything they read is local.
    const pixels = this.#pixels;
    const colours = palette.map(toYuvColour);
    const luma = Uint8Array.from(colours, ([y]) => y);
    const blue = Uint8Array.from(colours, ([, cb]) => cb);
    const red = Uint8Array.from(colours, ([, , cr]) => cr);
    const size = width * height;
    const planes = new Uint8Array(size * 1.5);
    for (let index = 0; index < size; index += 1) planes[index] = luma[pixels[index] as number] as number;
    let chroma = size;
    for (let y = 0; y < height; y += 2) {
      for (let x = 0; x < width; x += 2) {
        const colour = pixels[y * width + x] as number;
        planes[chroma] = blue[colour] as number;
        planes[chroma + size / 4] = red[colour] as number;
        chroma += 1;
      }
    }
    return planes;
  }

  /** The filtered rows. A row equal to the one above is all zeros under the filter "up", and costs next to nothing. */
  #packRows(): Buffer {
    const rowBytes = 1 + Math.ceil(this.width / 2);
    const rows = Buffer.alloc(rowBytes * this.height);
    let previous: Uint8Array | undefined;
    for (let y = 0; y < this.height; y += 1) {
      const row = this.#pixels.subarray(y * this.width, (y + 1) * this.width);
      const start = y * rowBytes;
      if (previous !== undefined && Buffer.compare(row, previous) === 0) rows[start] = 2;
      else packRow(row, rows, start + 1);
      previous = row;
    }
    return rows;
  }
}

/** Luma, blue and red of a colour, each from 16 to 240. */
function toYuvColour([red, green, blue]: Colour): readonly [number, number, number] {
  const luma = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  return [
    Math.round(16 + (219 / 255) * luma),
    Math.round(128 + (224 / 255 / 1.8556) * (blue - luma)),
    Math.round(128 + (224 / 255 / 1.5748) * (red - luma)),
  ];
}

function packRow(row: Uint8Array, into: Buffer, start: number): void {
  for (let x = 0; x < row.length; x += 2) {
    into[start + (x >> 1)] = ((row[x] as number) << 4) | (row[x + 1] ?? 0);
  }
}

function chunk(type: string, data: Buffer): Buffer {
  const bytes = Buffer.alloc(12 + data.length);
  bytes.writeUInt32BE(data.length, 0);
  bytes.write(type, 4, 'latin1');
  data.copy(bytes, 8);
  bytes.writeUInt32BE(crc32(bytes.subarray(4, 8 + data.length)), 8 + data.length);
  return bytes;
}

import { promisify } from 'node:util';
import { crc32, deflate, inflate, type ZlibOptions } from 'node:zlib';
import { yieldToEventLoop } from '../../../shared/runtime/yield-to-event-loop.ts';
import { unsupportedField } from './unsupported-field.ts';

const signature = Buffer.from('89504e470d0a1a0a', 'hex');
/** Maximum pixels of a mask: they are in memory at once. */
const maxPixels = 9_437_184;
/** Bytes decompressed at once: the usual 16 KiB make thousands of pieces of a large mask. */
const chunkSize = 1024 * 1024;
/** Rows converted before yielding to the event loop. */
const rowsPerYield = 16;

const inflated = promisify<Buffer, ZlibOptions, Buffer>(inflate);
const deflated = promisify<Buffer, Buffer>(deflate);

/** The alpha channel of a PNG that is still compressed. */
interface AlphaImage {
  readonly width: number;
  readonly height: number;
  /** Bytes of one pixel, and the offset of the (higher) byte of its alpha. */
  readonly pixelBytes: number;
  readonly alphaAt: number;
  readonly compressed: Buffer;
}

/**
 * Converts OpenAI's mask, whose transparent pixels are to be repainted, for vendors whose masks are white there and black where
 * the image stays (PNG, third edition, https://www.w3.org/TR/png-3/).
 * @throws ApiError 400 naming `mask` for anything but a PNG with an alpha channel.
 */
export async function toBlackAndWhite(mask: Buffer): Promise<Buffer> {
  const image = readAlphaImage(mask);
  const { width, height } = image;
  const rows = await decompress(image);
  const painted = Buffer.alloc(height * (width + 1));
  for (let row = 0; row < height; row++) {
    if (row % rowsPerYield === 0) await new Promise<void>(yieldToEventLoop);
    invertAlpha(image, rows, painted, row);
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  // Eight bits of grey; the rest is zero: no filter, no interlacing.
  header[8] = 8;
  const body = await deflated(painted);
  return Buffer.concat([signature, chunk('IHDR', header), chunk('IDAT', body), chunk('IEND', Buffer.alloc(0))]);
}

function refused(reason: string): Error {
  return unsupportedField('mask', reason);
}

function readAlphaImage(png: Buffer): AlphaImage {
  if (!png.subarray(0, 8).equals(signature)) throw refused('it must be a PNG');
  const parts: Buffer[] = [];
  let header: Buffer | undefined;
  for (let at = 8; at + 12 <= png.length; ) {
    const end = at + 12 + png.readUInt32BE(at);
    if (end > png.length) break;
    const type = png.toString('latin1', at + 4, at + 8);
    const data = png.subarray(at + 8, end - 4);
    if (type === 'IHDR') header = data;
    else if (type === 'IDAT') parts.push(data);
    at = end;
  }
  if (header?.length !== 13 || parts.length === 0) throw refused('it is no whole PNG');
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const [depth = 0, colour = 0, , , interlace] = header.subarray(8);
  // Grey with alpha, and colour with alpha.
  const channels = { 4: 2, 6: 4 }[colour];
  if (channels === undefined || (depth !== 8 && depth !== 16)) throw refused('it must be a PNG with an alpha channel');
  if (interlace !== 0) throw refused('it must be a PNG that is not interlaced');
  if (width * height === 0) throw refused('it has no pixels');
  if (width * height > maxPixels) throw refused(`it may have ${maxPixels} pixels`);
  const sampleBytes = depth / 8;
  const pixelBytes = channels * sampleBytes;
  return { width, height, pixelBytes, alphaAt: pixelBytes - sampleBytes, compressed: Buffer.concat(parts) };
}

async function decompress({ width, height, pixelBytes, compressed }: AlphaImage): Promise<Buffer> {
  const length = height * (1 + width * pixelBytes);
  const rows = await inflated(compressed, { maxOutputLength: length, chunkSize }).catch(() => undefined);
  if (rows?.length !== length) throw refused('it is no whole PNG');
  return rows;
}

/**
 * Unfilters a row's alpha and writes the inverse. A filter works on each byte of a pixel separately, so the other channels need
 * not be read; earlier rows are read back from the output.
 */
function invertAlpha({ width, pixelBytes, alphaAt }: AlphaImage, rows: Buffer, painted: Buffer, row: number): void {
  const start = row * (1 + width * pixelBytes);
  const filter = rows[start];
  const to = row * (width + 1) + 1;
  const above = to - (width + 1);
  let [left, upperLeft] = [0, 0];
  for (let x = 0; x < width; x++) {
    const up = row === 0 ? 0 : 255 - (painted[above + x] as number);
    const raw = rows[start + 1 + x * pixelBytes + alphaAt] as number;
    left = (raw + predicted(filter, left, up, upperLeft)) & 255;
    upperLeft = up;
    painted[to + x] = 255 - left;
  }
}

/** The five filters of PNG (section 9.2). */
function predicted(filter: number | undefined, left: number, up: number, upperLeft: number): number {
  switch (filter) {
    case 0:
      return 0;
    case 1:
      return left;
    case 2:
      return up;
    case 3:
      return (left + up) >> 1;
    case 4:
      return paeth(left, up, upperLeft);
    default:
      throw refused('it is no whole PNG');
  }
}

function paeth(left: number, up: number, upperLeft: number): number {
  const estimate = left + up - upperLeft;
  const offLeft = Math.abs(estimate - left);
  const offUp = Math.abs(estimate - up);
  const offUpperLeft = Math.abs(estimate - upperLeft);
  if (offLeft <= offUp && offLeft <= offUpperLeft) return left;
  return offUp <= offUpperLeft ? up : upperLeft;
}

function chunk(type: string, data: Buffer): Buffer {
  const bytes = Buffer.alloc(12 + data.length);
  bytes.writeUInt32BE(data.length, 0);
  bytes.write(type, 4, 'latin1');
  data.copy(bytes, 8);
  bytes.writeUInt32BE(crc32(bytes.subarray(4, 8 + data.length)), 8 + data.length);
  return bytes;
}

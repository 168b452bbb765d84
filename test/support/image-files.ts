import { randomBytes } from 'node:crypto';
import { PNG } from 'pngjs';

/** A PNG of one colour. */
export function pngBytes(width: number, height = width): Buffer {
  const picture = new PNG({ width, height });
  picture.data.fill(0x80);
  return PNG.sync.write(picture);
}

/** The same as a file to upload. */
export function pngFile(name: string, width = 64, height = width): File {
  return new File([new Uint8Array(pngBytes(width, height))], name, { type: 'image/png' });
}

/** A file of about that many bytes that starts as a PNG of 320×200 pixels and goes on at random. */
export function largePngFile(name: string, bytes: number): File {
  const header = Buffer.from('89504e470d0a1a0a0000000d4948445200000140000000c80802000000', 'hex');
  return new File([header, new Uint8Array(randomBytes(bytes))], name, { type: 'image/png' });
}

/** Size of a PNG in pixels, `1024x1024`, once a decoder has read all of it. */
export function decodedSize(png: Uint8Array): string {
  const { width, height } = PNG.sync.read(Buffer.from(png));
  return `${width}x${height}`;
}

import { createHash } from 'node:crypto';
import type { FormFile, Inspector } from '../form.ts';
import { type ImageHeader, readImageHeader } from '../image-header.ts';
import { isObject } from '../json-value.ts';
import { invalidParameter, WireError } from '../wire-error.ts';

/** An uploaded image; its bytes are not kept. */
export interface SourceImage {
  header: ImageHeader;
  bytes: number;
  /** Hexadecimal. */
  sha256: string;
}

/** Image headers lie in the first bytes; photographs may have previews and colour profiles before the size. */
const HEAD_BYTES = 256 * 1024;

/** Detects an image's format and size while it streams through. */
export class ImageInspector implements Inspector<ImageHeader | undefined> {
  readonly #head: Buffer[] = [];
  #missing = HEAD_BYTES;

  push(chunk: Buffer): void {
    if (this.#missing === 0) return;
    const part = chunk.subarray(0, this.#missing);
    this.#head.push(part);
    this.#missing -= part.length;
  }

  end(): ImageHeader | undefined {
    return readImageHeader(Buffer.concat(this.#head));
  }
}

/**
 * Converts an uploaded file.
 * @throws WireError 400 for a file that is not PNG, JPEG or WebP.
 */
export function toSourceImage(file: FormFile<ImageHeader | undefined>): SourceImage {
  const { facts: header, bytes, sha256, field } = file;
  if (header === undefined || header.format === 'GIF') {
    const message = `Invalid file '${field}': unsupported mimetype ('${header?.mediaType ?? 'application/octet-stream'}'). Supported file formats are 'image/jpeg', 'image/png', and 'image/webp'.`;
    throw new WireError(400, message, { code: 'unsupported_file_mimetype', param: field });
  }
  return { header, bytes, sha256 };
}

/**
 * Parses `{image_url: "data:…"}`.
 * @param name its path in the request.
 */
export function readImageReference(reference: unknown, name: string): SourceImage {
  const url = isObject(reference) ? reference.image_url : undefined;
  if (typeof url !== 'string') {
    throw invalidParameter(name, `'${name}' must be an object with an 'image_url'; the sandbox keeps no files.`);
  }
  const data = /^data:[^,]{0,200};base64,/i.exec(url);
  if (data === null) {
    throw invalidParameter(`${name}.image_url`, `'${name}.image_url' must be a data URL: the sandbox fetches nothing.`);
  }
  const content = Buffer.from(url.slice(data[0].length), 'base64');
  const sha256 = createHash('sha256').update(content).digest('hex');
  return toSourceImage({ field: name, bytes: content.length, sha256, facts: readImageHeader(content) });
}

/** Validates the mask against the first image, as OpenAI does. */
export function checkMask(mask: SourceImage, image: SourceImage): void {
  if (mask.header.format !== 'PNG') {
    throw new WireError(400, 'Invalid mask image format - the mask must be a PNG.', { param: 'mask' });
  }
  if (mask.header.width !== image.header.width || mask.header.height !== image.header.height) {
    const message = 'Invalid mask image format - mask size does not match image size.';
    throw new WireError(400, message, { param: 'mask' });
  }
}

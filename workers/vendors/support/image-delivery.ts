import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import {
  formatImageEnd,
  type ImageResponseFormat,
  type ImageResult,
  type PlacedImageJob,
} from '../../../shared/capabilities/image.ts';
import { ApiError } from '../../../shared/errors.ts';
import { readAsBase64 } from '../../http/answer-file.ts';
import { type Downloader, isPassingFailure } from '../../http/download.ts';
import type { JobAnswer, VendorCall } from '../vendor.ts';
import { typeOfImage } from './inline-media.ts';
import { isObject, type JsonObject } from './json-object.ts';
import { headBytes, refuseText, typeOfText, withHead } from './refuse-text.ts';

/** The caller's format: as requested, else OpenAI's default for the model, which in a stream is always base64. */
export function wantedFormat(job: PlacedImageJob, isStream: boolean): ImageResponseFormat {
  return job.response_format ?? (job.takes_response_format && !isStream ? 'url' : 'b64_json');
}

/** Images of one answer that may fail before the rest are left: each can cost several downloads. */
const maxLost = 10;

/**
 * Converts every image of an answer to the caller's format, and the answer to the end of the job. An image that fails for good is
 * left out and not counted: the vendor bills the others.
 * @throws ApiError of the first image, if none can be delivered, and as soon as the call is aborted or its images are too large together.
 */
export async function deliverImages(
  { created, data, ...rest }: JsonObject & { data: JsonObject[] },
  delivery: ImageDelivery,
): Promise<JobAnswer> {
  const results: ImageResult<string | Buffer>[] = [];
  const failures: unknown[] = [];
  // Sequential: at most one image is in memory beside the answer itself.
  for (const image of data) {
    try {
      results.push(await delivery.deliver(image));
    } catch (error) {
      if (delivery.isOver) throw error;
      if (failures.push(error) === maxLost) break;
    }
  }
  if (results.length === 0) throw failures[0];
  const usage = isObject(rest.usage) ? rest.usage : null;
  const at = typeof created === 'number' ? created : Math.floor(Date.now() / 1000);
  const counted = usage === null ? {} : { usage };
  // The gateway's own fields come first: a vendor's other fields cannot pass for the mark of `formatImageEnd`.
  const body = formatImageEnd({ created: at, data: results, ...rest, ...counted });
  return { body, usage, quantities: { images: results.length } };
}

/** Limit of the fetched images of one call in bytes: links must not yield more than a vendor may send inline. */
const maxImageBytes = 128 * 1024 * 1024;

/** Tries to fetch an image, and the wait between them, which grows. */
const fetches = 3;
const fetchPauseMs = 500;

/** Converts the images of one call for their caller. */
export class ImageDelivery {
  private readonly call: VendorCall;
  private readonly wanted: ImageResponseFormat;
  private readonly download: Downloader;
  private bytes = 0;

  constructor(call: VendorCall, wanted: ImageResponseFormat, download: Downloader) {
    this.call = call;
    this.wanted = wanted;
    this.download = download;
  }

  /** Whether no further image can be delivered: the call is aborted, or its images are too large together. */
  get isOver(): boolean {
    return this.call.signal.aborted || this.bytes > maxImageBytes;
  }

  /** One image of the vendor as a result. @throws ApiError for anything but an image: it is not charged */
  async deliver({ url, b64_json: base64, file: _, ...rest }: JsonObject): Promise<ImageResult<string | Buffer>> {
    if ((typeof base64 === 'string' || Buffer.isBuffer(base64)) && base64.length > 0)
      return { ...rest, ...(await this.fromBase64(base64)) };
    if (typeof url === 'string' && isDataUrl(url)) return { ...rest, ...(await this.fromBase64(url)) };
    if (typeof url === 'string' && url !== '') return { ...rest, ...(await this.fromLink(url)) };
    throw new ApiError('server_error', "The model's vendor answered with an image that is empty.");
  }

  private async fromBase64(said: string | Buffer): Promise<ImageResult<string | Buffer>> {
    // Some vendors send a data URL.
    const base64 = typeof said === 'string' && isDataUrl(said) ? said.slice(said.indexOf(',') + 1) : said;
    const head = textOf(base64, 2 * headBytes);
    if (!/^[\w+/-]+=*\s*$/.test(head)) throw notAnImage();
    const type = typeOfBytes(Buffer.from(head, 'base64'));
    if (this.wanted === 'b64_json') return { b64_json: base64 };
    if (type === undefined) {
      throw new ApiError('server_error', "The model's vendor answered with an image of an unknown kind.");
    }
    const stored = await this.call.files.save(Buffer.from(textOf(base64), 'base64'), type);
    // The completed event of a stream always holds base64: clients rely on it.
    return { ...(this.call.stream && { b64_json: base64 }), ...stored };
  }

  /** The image is paid for: a connection that breaks must not lose it. */
  private async fromLink(url: string): Promise<ImageResult<string | Buffer>> {
    const { signal } = this.call;
    for (let tries = 1; ; tries++) {
      const before = this.bytes;
      try {
        return await this.fetchImage(url);
      } catch (error) {
        if (tries === fetches || signal.aborted || !isPassingFailure(error)) throw error;
        this.bytes = before;
      }
      await delay(fetchPauseMs * tries, undefined, { signal }).catch(() => undefined);
    }
  }

  private async fetchImage(url: string): Promise<ImageResult<string | Buffer>> {
    const { content, type: said = '' } = await this.download(url, this.call);
    try {
      const { head, whole } = await withHead(content, this.counted(content));
      const type = typeOfBytes(head) ?? typeOfUnknown(said);
      if (this.wanted === 'b64_json') return { b64_json: await readAsBase64(whole, this.readerOf(content)) };
      return { ...(await this.call.files.save(whole, type)) };
    } catch (error) {
      content.destroy();
      throw error;
    }
  }

  private readerOf(content: Readable): Parameters<typeof readAsBase64>[1] {
    const { holder, signal } = this.call;
    const cause = new Error('its server has stopped in the middle');
    const error = new ApiError('server_error', "A file of the model's vendor could not be fetched.", { cause });
    return { holder, signal, giveUp: () => content.destroy(error) };
  }

  private async *counted(content: Readable): AsyncGenerator<Buffer> {
    for await (const chunk of content) {
      this.bytes += chunk.length;
      if (this.bytes > maxImageBytes) {
        throw new ApiError('server_error', "The images of the model's vendor are too large together.");
      }
      yield chunk;
    }
  }
}

/** Whether an image is inside of what stands for its link or its base64. */
function isDataUrl(text: string): boolean {
  return /^data:/i.test(text);
}

/** Base64 as text, or its first characters. */
function textOf(base64: string | Buffer, end?: number): string {
  return typeof base64 === 'string' ? base64.slice(0, end) : base64.toString('latin1', 0, end);
}

/** How drawings begin, as Latin-1. Links open in browsers, and in these scripts may run: they are only saved. */
const drawing = /^(\xef\xbb\xbf)?\s*<(svg|\?xml)/;

/**
 * The type to store an image with, by its first bytes: what a vendor says of it may be wrong, and a page that says why there is no
 * image must not pass for one. Undefined for kinds that are not known here. @throws ApiError for no image
 */
function typeOfBytes(bytes: Buffer): string | undefined {
  const type = typeOfImage(bytes);
  if (type !== undefined) return type;
  const text = bytes.toString('latin1', 0, headBytes);
  if (drawing.test(text)) return 'application/octet-stream';
  if (text === '' || typeOfText(bytes) !== undefined) throw notAnImage();
  return undefined;
}

/** The same of a file of an unknown kind. @throws ApiError for what its server calls a text */
function typeOfUnknown(said: string): string {
  refuseText(said, 'an image');
  return 'image/png';
}

function notAnImage(): ApiError {
  return new ApiError('server_error', "The model's vendor answered with an image that is none.");
}

/** Delivers images that a vendor names by links or data URLs. @throws ApiError if there is none */
export async function deliverLinks(
  links: readonly unknown[],
  delivery: ImageDelivery,
  format: string | undefined,
): Promise<JobAnswer> {
  if (links.length === 0) throw new ApiError('server_error', "The model's vendor answered without images.");
  const data = links.map((url) => ({ url }));
  return await deliverImages({ data, ...(format && { output_format: format }) }, delivery);
}

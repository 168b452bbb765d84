import { Upload } from '../../../shared/blobs/upload.ts';
import type { PlacedImageJob } from '../../../shared/capabilities/image.ts';
import { mediaDefaults } from '../../../shared/catalogue/media-fields.ts';
import { ApiError } from '../../../shared/errors.ts';
import { requestText } from '../request-body.ts';
import type { CallFiles, VendorCall } from '../vendor.ts';
import { typeOfUpload } from './inline-media.ts';
import type { JsonObject } from './json-object.ts';
import { refuseDelivery, unsupportedField } from './unsupported-field.ts';

/** Limit of the images of one request in bytes: they are in memory at once, in base64. */
const maxImageBytes = 64 * 1024 * 1024;

const harmless = mediaDefaults.image;

/** Width and height in pixels. */
export interface ImageSize {
  readonly width: number;
  readonly height: number;
}

/** An image job for vendors that do not speak OpenAI's dialect. */
export interface ImageRequest {
  readonly job: PlacedImageJob;
  readonly prompt: string;
  /** Number of requested images. */
  readonly count: number;
  /** Undefined: the model's default. */
  readonly size: ImageSize | undefined;
  /** `png`, `jpeg` or `webp`; undefined: the model's default. */
  readonly format: string | undefined;
  /** Percent; undefined: the model's default, or none. */
  readonly compression: number | undefined;
  /** Fields that are not OpenAI's: the vendor's own, passed unchanged (`seed`, `guidance`, …). */
  readonly own: JsonObject;
}

/** Image features that only some vendors have. */
interface ImageTalents {
  /** `true`: the adapter reads the job's mask itself. */
  readonly masks?: boolean;
}

/** @throws ApiError 400 for a request of several images, where one request makes one. */
export function refuseSeveral({ count }: Pick<ImageRequest, 'count'>): void {
  if (count > 1) throw unsupportedField('n', "the model's vendor makes one image per request");
}

/** @throws ApiError 400 for a compression that differs from the default, where the vendor has none. */
export function refuseCompression({ compression }: Pick<ImageRequest, 'compression'>): void {
  if (compression === undefined || compression === 100) return;
  throw unsupportedField('output_compression', "the model's vendor does not have it");
}

/** An image job with its uploads after the images that its caller has named. */
export function readImageJob({ request, uploads }: Pick<VendorCall, 'request' | 'uploads'>): PlacedImageJob {
  const job = JSON.parse(requestText(request)) as PlacedImageJob;
  if (uploads.length === 0) return job;
  const mask = uploads.find(({ field }) => field === 'mask');
  return { ...job, images: [...job.images, ...uploads.filter((upload) => upload !== mask)], mask: mask ?? job.mask };
}

/**
 * Reads an image job for a vendor that does not support OpenAI's `background`, `moderation`, `quality`, `style` and
 * `input_fidelity`, masks (unless `masks` is set), variations, streams and results sent elsewhere. `user`, a hint, is left out.
 * @throws ApiError 400 naming the field that asks for something unsupported.
 */
export function readImageRequest(call: VendorCall, { masks = false }: ImageTalents = {}): ImageRequest {
  const job = readImageJob(call);
  if (job.task === 'variation') throw unsupportedField('model', 'its vendor makes no variations');
  if (job.mask !== null && !masks) throw unsupportedField('mask', "the model's vendor takes no masks");
  if (call.stream) throw unsupportedField('stream', "the model's vendor does not stream images");
  const { prompt, n, size, output_format: format, output_compression: compression, user: _, ...rest } = job.parameters;
  const own: JsonObject = {};
  for (const [name, value] of Object.entries(rest)) {
    if (value === null || value === undefined) continue;
    if (!Object.hasOwn(harmless, name)) own[name] = value;
    else if (!harmless[name]?.includes(value)) throw unsupportedField(name, "the model's vendor does not have it");
  }
  refuseDelivery(own);
  return {
    job,
    prompt: String(prompt),
    count: Number(n ?? 1),
    size: readSize(size),
    format: typeof format === 'string' ? format : undefined,
    compression: typeof compression === 'number' ? compression : undefined,
    own,
  };
}

/** @throws ApiError 400 for an invalid size. */
export function readSize(size: unknown): ImageSize | undefined {
  if (size === undefined || size === null || size === 'auto') return undefined;
  const [, width, height] = /^([1-9]\d{0,4})x([1-9]\d{0,4})$/.exec(String(size)) ?? [];
  if (width === undefined) throw unsupportedField('size', "it is neither '<width>x<height>' nor 'auto'");
  return { width: Number(width), height: Number(height) };
}

/** The aspect ratio of a size in its smallest numbers: 1792 x 1024 is `7:4`. */
export function aspectRatio({ width, height }: ImageSize): string {
  let [divisor, rest] = [width, height];
  while (rest > 0) [divisor, rest] = [rest, divisor % rest];
  return `${width / divisor}:${height / divisor}`;
}

/** The input images of a request, each a link or a base64 data URL. */
export async function inputImages({ images }: PlacedImageJob, files: CallFiles): Promise<string[]> {
  const links: string[] = [];
  let bytes = 0;
  for (const image of images) {
    const link = image instanceof Upload ? await toDataUrl(image, files, maxImageBytes - bytes) : image.image_url;
    bytes += link?.length ?? 0;
    links.push(String(link));
  }
  return links;
}

/** An upload as a base64 data URL. @throws ApiError for one of more than `maxBytes` bytes. */
export async function toDataUrl(upload: Upload, files: CallFiles, maxBytes = maxImageBytes): Promise<string> {
  const { content, bytes } = await files.open(upload);
  if (bytes > maxBytes) {
    content.destroy();
    throw new ApiError('request_too_large', `The images of a request may have ${maxImageBytes} bytes together.`);
  }
  const chunks: Buffer[] = [];
  for await (const chunk of content) chunks.push(chunk);
  const image = Buffer.concat(chunks);
  return `data:${typeOfUpload(upload, image)};base64,${image.toString('base64')}`;
}

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { Upload } from '../blobs/upload.ts';

/** Tasks of image models; each is a separate endpoint. */
export type ImageTask = 'generation' | 'edit' | 'variation';

/** How a caller receives images: as links to files stored by the gateway, or as base64 inside the response. */
export type ImageResponseFormat = 'url' | 'b64_json';

/** Maximum number of images per edit. */
const maxInputs = 16;
/** Maximum length of a data URL: OpenAI's limit. */
const maxImageUrl = 20_971_520;

const options = {
  // The operator may configure a default model.
  model: z.string().min(1).max(256).nullish(),
  n: z.int().min(1).max(10).nullish(),
  // Allowed sizes depend on the model: they are validated against its row.
  size: z.string().nullish(),
  response_format: z.enum(['url', 'b64_json']).nullish(),
  user: z.string().optional(),
};

const paintingOptions = {
  ...options,
  prompt: z.string().min(1).max(32_000),
  background: z.enum(['transparent', 'opaque', 'auto']).nullish(),
  moderation: z.enum(['low', 'auto']).nullish(),
  output_format: z.enum(['png', 'jpeg', 'webp']).nullish(),
  output_compression: z.int().min(0).max(100).nullish(),
  stream: z.boolean().nullish(),
  partial_images: z.int().min(0).max(3).nullish(),
  quality: z.enum(['standard', 'hd', 'low', 'medium', 'high', 'auto']).nullish(),
};

const editOptions = { ...paintingOptions, input_fidelity: z.enum(['high', 'low']).nullish() };

/** Partial images are only sent in a stream. */
function checkPartialImages({ value, issues }: z.core.ParsePayload<Record<string, unknown>>): void {
  if (!value.partial_images || value.stream === true) return;
  const message = "it is only allowed when 'stream' is enabled";
  issues.push({ code: 'custom', input: value, path: ['partial_images'], message });
}

/** OpenAI's `CreateImageRequest`; unknown fields are kept. */
export const imageGenerationRequest = z
  .looseObject({ ...paintingOptions, style: z.enum(['vivid', 'natural']).nullish() })
  .check(checkPartialImages);

/** An image in JSON: a link, or a data URL. Strict, as other keys could only imitate the gateway's internal ones. */
export const imageReference = z
  .strictObject({
    image_url: z.string().max(maxImageUrl).optional(),
    file_id: z.unknown().optional(),
  })
  .check(({ value, issues }) => {
    const broken = (field: string, message: string) =>
      issues.push({ code: 'custom', input: value, path: [field], message });
    if (value.file_id !== undefined) broken('file_id', 'files are not offered here: give the image as image_url');
    else if (value.image_url === undefined) broken('image_url', 'an image is a data URL or a link in image_url');
    else if (!/^(https:\/\/|data:image\/[\w.+-]+;base64,)/i.test(value.image_url))
      broken('image_url', 'it is neither an https link nor a base64 data URL of an image');
  });

/** OpenAI's `EditImageBodyJsonParam`; unknown fields are kept. */
export const imageEditRequest = z
  .looseObject({
    ...editOptions,
    images: z.array(imageReference).min(1).max(maxInputs),
    mask: imageReference.nullish(),
  })
  .check(checkPartialImages);

/** A file as the form parser returns it. No JSON value matches. */
export const upload = z.instanceof(Upload);

/** The fields of an edit form, with numbers and booleans parsed and the uploads in `image` and `mask`. */
export const imageEditForm = z
  .looseObject({ ...editOptions, image: z.array(upload).min(1).max(maxInputs), mask: upload.optional() })
  .check(checkPartialImages);

/** The fields of a variation form, which takes one image and cannot be streamed. */
export const imageVariationForm = z
  .looseObject({ ...options, image: z.array(upload).min(1).max(1) })
  .check(({ value, issues }) => {
    for (const name of ['stream', 'partial_images', 'mask']) {
      const given = value[name];
      if (given === undefined || given === false) continue;
      issues.push({ code: 'custom', input: value, path: [name], message: 'variations do not take it' });
    }
  });

/** An image in a JSON request: a data URL, or a link that the vendor fetches. */
type ImageReference = z.infer<typeof imageReference>;

/** An image as passed to a vendor: an upload, or a reference from the request. */
export type ShownImage = Upload | ImageReference;

/**
 * The request of an image job, the same for every vendor. Its `delta` frames are partial images: OpenAI's
 * `image_generation.partial_image` without its `type`, with the picture in base64 whatever the response format.
 */
export interface ImageJob {
  readonly task: ImageTask;
  /** Null: the model's default. */
  readonly response_format: ImageResponseFormat | null;
  /** The images to edit or vary; empty for a generation, and if they are uploads, which are stored beside the job. */
  readonly images: readonly ImageReference[];
  readonly mask: ImageReference | null;
  /** The caller's other fields (prompt, n, size, …), including unknown ones: they pass through. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** The job as passed to its vendor, with its uploads and the worker's additions. */
export interface PlacedImageJob extends Omit<ImageJob, 'images' | 'mask'> {
  /** All uploads, or all references. */
  readonly images: readonly ShownImage[];
  readonly mask: ShownImage | null;
  /** Whether the vendor accepts `response_format` for this model; if not, it returns base64. */
  readonly takes_response_format: boolean;
}

/**
 * One image of an `end` frame: base64, a stored file, or (for a stream that requested links) both. Base64 that is written as its
 * vendor has sent it is in bytes.
 */
export interface ImageResult<Base64 extends string | Buffer = string> {
  readonly b64_json?: Base64;
  /** Id of the stored file's blob, with its media type and size. */
  readonly file?: string;
  readonly type?: string;
  readonly bytes?: number;
  /** The vendor's usage for this image alone; only streams report it. */
  readonly usage?: Readonly<Record<string, unknown>>;
  /** `revised_prompt`, and other fields from the vendor. */
  readonly [field: string]: unknown;
}

/** An `end` frame: OpenAI's `ImagesResponse` with images as above. */
export interface ImageEnd<Base64 extends string | Buffer = string> {
  /** Seconds since 1970. */
  readonly created: number;
  readonly data: readonly ImageResult<Base64>[];
  readonly usage?: Readonly<Record<string, unknown>>;
  /** `background`, `output_format`, `quality`, `size`, and other fields from the vendor. */
  readonly [field: string]: unknown;
}

const wireMark = '{"is_wire":true,';

/** Stands for base64 in bytes while the text around it is made; unknown outside of this process, so that no text passes for one. */
const bytesMark = `bytes:${randomUUID()}`;

/**
 * An `end` frame. If its images are only base64, it is marked as ready for the wire, which saves parsing megabytes; if some of that
 * is in bytes, so is the frame, in parts.
 */
export function formatImageEnd(end: ImageEnd): string;
export function formatImageEnd(end: ImageEnd<string | Buffer>): string | readonly Buffer[];
export function formatImageEnd(end: ImageEnd<string | Buffer>): string | readonly Buffer[] {
  const start = end.data.every(({ file, usage }) => file === undefined && usage === undefined) ? wireMark : '{';
  const inBytes: Buffer[] = [];
  const data = end.data.map((image) => {
    if (!Buffer.isBuffer(image.b64_json)) return image;
    inBytes.push(image.b64_json);
    return { ...image, b64_json: bytesMark };
  });
  const text = start + JSON.stringify({ ...end, data }).slice(1);
  if (inBytes.length === 0) return text;
  return text.split(bytesMark).flatMap((around, index) => [Buffer.from(around), ...inBytes.slice(index, index + 1)]);
}

/** The wire body in an `end` frame, or undefined if its images must first be linked. */
export function wireBodyOf(text: string): string | undefined {
  return text.startsWith(wireMark) ? `{${text.slice(wireMark.length)}` : undefined;
}

/** The same of an `end` frame in UTF-8, of which only the beginning is changed: how the body begins, for how many bytes. */
export function wireStartOf(bytes: Buffer): { readonly text: string; readonly replaces: number } | undefined {
  if (bytes.toString('latin1', 0, wireMark.length) !== wireMark) return undefined;
  return { text: '{', replaces: wireMark.length };
}

/** Parses the output of `formatImageEnd`. */
export function parseImageEnd(text: string): ImageEnd {
  return JSON.parse(wireBodyOf(text) ?? text) as ImageEnd;
}

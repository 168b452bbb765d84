import { z } from 'zod';
import { Upload } from '../blobs/upload.ts';

/** What an image model can be asked to do; each is an endpoint of its own. */
export type ImageTask = 'generation' | 'edit' | 'variation';

/** How a caller gets its images: as links to files that the gateway keeps, or as base64 inside the answer. */
export type ImageResponseFormat = 'url' | 'b64_json';

/** Images of one edit. */
const maxInputs = 16;
/** Characters of a data URL: OpenAI's limit. */
const maxImageUrl = 20_971_520;

const options = {
  // An operator may have a model for those who name none.
  model: z.string().min(1).max(256).nullish(),
  n: z.int().min(1).max(10).nullish(),
  // Which sizes there are depends on the model: they are held against its row.
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

/** Partial images are only seen in a stream. */
function checkPartialImages({ value, issues }: z.core.ParsePayload<Record<string, unknown>>): void {
  if (!value.partial_images || value.stream === true) return;
  const message = "it is only allowed when 'stream' is enabled";
  issues.push({ code: 'custom', input: value, path: ['partial_images'], message });
}

/** OpenAI's `CreateImageRequest`; unknown fields are kept. */
export const imageGenerationRequest = z
  .looseObject({ ...paintingOptions, style: z.enum(['vivid', 'natural']).nullish() })
  .check(checkPartialImages);

/** An image in JSON: a link, or a data URL. Strict: no other key of it could mean anything but what the gateway made. */
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

/** A file as a form's reader has it. No JSON is one. */
export const upload = z.instanceof(Upload);

/** The fields of a form for an edit, its numbers and booleans read already, the uploads in `image` and `mask`. */
export const imageEditForm = z
  .looseObject({ ...editOptions, image: z.array(upload).min(1).max(maxInputs), mask: upload.optional() })
  .check(checkPartialImages);

/** The same for a variation, which takes one image and cannot be streamed. */
export const imageVariationForm = z
  .looseObject({ ...options, image: z.array(upload).min(1).max(1) })
  .check(({ value, issues }) => {
    for (const name of ['stream', 'partial_images', 'mask']) {
      const given = value[name];
      if (given === undefined || given === false) continue;
      issues.push({ code: 'custom', input: value, path: [name], message: 'variations do not take it' });
    }
  });

/** An image as the caller named it in JSON: a data URL, or a link that the vendor fetches. */
type ImageReference = z.infer<typeof imageReference>;

/** What a vendor is shown: an upload, or an image as the caller named it. */
export type ShownImage = Upload | ImageReference;

/**
 * The request of an image job, the same for every vendor. Its `delta` frames are partial images: OpenAI's
 * `image_generation.partial_image` without its `type`, the picture in base64 whatever the response format.
 */
export interface ImageJob {
  readonly task: ImageTask;
  /** Null: as is usual for the model. */
  readonly response_format: ImageResponseFormat | null;
  /** What is edited or varied; empty for a generation, and where the images are uploads, which lie beside the job. */
  readonly images: readonly ImageReference[];
  readonly mask: ImageReference | null;
  /** The caller's other fields (prompt, n, size, …), unknown ones too: they pass through. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** The job as its vendor gets it, with its uploads, and with what the worker adds to it. */
export interface PlacedImageJob extends Omit<ImageJob, 'images' | 'mask'> {
  /** All uploads, or all references. */
  readonly images: readonly ShownImage[];
  readonly mask: ShownImage | null;
  /** Whether the vendor takes `response_format` for this model; where it does not, it answers base64. */
  readonly takes_response_format: boolean;
}

/** One image of an `end` frame: base64, a stored file, or (a stream that asked for links) both. */
export interface ImageResult {
  readonly b64_json?: string;
  /** Id of the stored file's blob, with its media type and size. */
  readonly file?: string;
  readonly type?: string;
  readonly bytes?: number;
  /** What the vendor counted for this image alone; only streams tell. */
  readonly usage?: Readonly<Record<string, unknown>>;
  /** `revised_prompt`, and what else the vendor says of it. */
  readonly [field: string]: unknown;
}

/** An `end` frame: OpenAI's `ImagesResponse` with images as above. */
export interface ImageEnd {
  /** Seconds since 1970. */
  readonly created: number;
  readonly data: readonly ImageResult[];
  readonly usage?: Readonly<Record<string, unknown>>;
  /** `background`, `output_format`, `quality`, `size`, and what else the vendor says. */
  readonly [field: string]: unknown;
}

const wireMark = '{"is_wire":true,';

/**
 * The text of an `end` frame. One whose images are base64 and nothing else is marked: it is the wire's body already, and
 * megabytes that need not be parsed.
 */
export function formatImageEnd(end: ImageEnd): string {
  const isWire = end.data.every(({ file, usage }) => file === undefined && usage === undefined);
  const text = JSON.stringify(end);
  return isWire ? wireMark + text.slice(1) : text;
}

/** The body that an `end` frame is as it stands, or undefined where its images are yet to be linked. */
export function wireBodyOf(text: string): string | undefined {
  return text.startsWith(wireMark) ? `{${text.slice(wireMark.length)}` : undefined;
}

/** Reads what `formatImageEnd` wrote. */
export function parseImageEnd(text: string): ImageEnd {
  return JSON.parse(wireBodyOf(text) ?? text) as ImageEnd;
}

import type { z } from 'zod';
import type { Upload } from '../../../shared/blobs/upload.ts';
import {
  type ImageJob,
  type ImageTask,
  imageEditRequest,
  imageGenerationRequest,
} from '../../../shared/capabilities/image.ts';
import { givenMediaFields } from '../../../shared/catalogue/media-fields.ts';
import { parseJson } from '../../http/body/parse-json.ts';
import { mediaExtras } from '../../pipeline/media-extras.ts';
import type { Parse, ParsedRequest } from '../../pipeline/parsed-request.ts';
import { InputMedia, imageFeeExtent } from '../../pipeline/request-extent.ts';
import { invalidRequest, leaveOutNulls, requestTags, unlessUnreadable } from '../../pipeline/request-fields.ts';
import { vendorFacts } from '../../pipeline/vendor-facts.ts';
import { withoutTags } from '../../pipeline/without-tags.ts';
import type { MediaFieldRequirements } from '../check-media-fields.ts';

/** Facts of a request that `checkImage` checks against the model's row. */
export interface ImageRequirements extends MediaFieldRequirements {
  readonly n: number;
  /** Undefined if the model decides. */
  readonly size: string | undefined;
  readonly partialImages: number;
}

/** A checked request without its images. */
interface ImageRequest {
  readonly model?: string | null | undefined;
  readonly n?: number | null | undefined;
  readonly size?: string | null | undefined;
  readonly response_format?: 'url' | 'b64_json' | null | undefined;
  readonly stream?: unknown;
  readonly partial_images?: unknown;
  readonly metadata?: unknown;
}

/** Like `readRequestFields`, in the order of the schema. @throws ApiError 400 for what the schema refuses. */
export function checked<Schema extends z.ZodType>(schema: Schema, input: unknown): z.infer<Schema> {
  leaveOutNulls(schema, input);
  const read = unlessUnreadable(() => schema.safeParse(input));
  if (!read?.success) throw invalidRequest(schema, input);
  return read.data;
}

/** Images of an image job. */
interface ImageInputs {
  readonly images?: ImageJob['images'];
  readonly mask?: ImageJob['mask'] | undefined;
  readonly uploads?: readonly Upload[];
}

/** Makes the job of a checked request. */
export function composeImageJob(
  task: ImageTask,
  input: ImageRequest,
  { images = [], mask = null, uploads = [] }: ImageInputs = {},
): ParsedRequest<ImageRequirements> {
  const { model, stream, response_format: responseFormat, ...parameters } = withoutTags(input);
  const job: ImageJob = { task, response_format: responseFormat ?? null, images, mask, parameters: { ...parameters } };
  const isMasked = mask !== null || uploads.some(({ field }) => field === 'mask');
  const mediaFields = givenMediaFields('image', { ...job, mask: isMasked || null });
  const requirements: ImageRequirements = {
    n: parameters.n ?? 1,
    size: parameters.size ?? undefined,
    partialImages: Number(parameters.partial_images ?? 0),
    mediaFields,
  };
  const media = new InputMedia();
  for (const image of mask === null ? images : [...images, mask]) media.addImage(image.image_url);
  for (const _upload of uploads) media.addImage(undefined);
  return {
    model: model ?? '',
    stream: stream === true,
    request: JSON.stringify(job),
    hasMedia: images.length > 0 || uploads.length > 0,
    viewOptions: {},
    extent: { images: requirements.n, ...media.extent, ...imageFeeExtent(parameters) },
    ...requestTags(input.metadata),
    // What a caller names `images` where the endpoint has none is passed on, too.
    ...vendorFacts({ images, mask, ...parameters }, mediaExtras('image', mediaFields, parameters)),
    requirements,
    files: uploads,
  };
}

/** Parses `POST /v1/images/generations`. */
export const parseImageGeneration: Parse<ImageRequirements> = (body) =>
  composeImageJob('generation', checked(imageGenerationRequest, parseJson(body)));

/** Parses the JSON of `POST /v1/images/edits`. */
export const parseImageEdit: Parse<ImageRequirements> = (body) => {
  const { images, mask, ...request } = checked(imageEditRequest, parseJson(body));
  return composeImageJob('edit', request, { images, mask });
};

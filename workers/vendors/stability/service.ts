import { type ImageRequest, refuseCompression, refuseSeveral } from '../support/image-request.ts';
import { nearestResolution, nearestShape } from '../support/image-shape.ts';
import type { JsonObject } from '../support/json-object.ts';
import { unsupportedField } from '../support/unsupported-field.ts';

/*
 * Stability AI's Stable Image (https://platform.stability.ai/docs/api-reference, its OpenAPI document as of 2025-06, by
 * https://github.com/tadasant/mcp-server-stability-ai/blob/main/src/stabilityAi/types.ts, read 2026-11-21).
 *
 * | OpenAI                | Stable Image                                                                        |
 * |-----------------------|-------------------------------------------------------------------------------------|
 * | model                 | the service; `model` with Stable Diffusion 3                                        |
 * | prompt                | prompt                                                                              |
 * | size                  | aspect_ratio; refused with an image, which sets the shape, except for Ultra         |
 * | output_format         | output_format; Stable Diffusion 3 has no webp                                       |
 * | image, images         | image, only one, with `strength`; refused by Core                                   |
 * | mask                  | mask of inpainting, converted to black and white; refused by the others             |
 * | n, output_compression | refused except 1 and 100                                                            |
 * | stream, variations    | refused                                                                             |
 * | background, moderation, quality, style, input_fidelity | refused except their defaults                      |
 * | user                  | left out                                                                            |
 * | any other             | as it is: negative_prompt, seed, strength, style_preset, cfg_scale, grow_mask       |
 */

const shapes = ['1:1', '2:3', '3:2', '4:5', '5:4', '9:16', '16:9', '9:21', '21:9'] as const;

/**
 * Distance of an edit from its image (1: completely different) if the caller gives none; the vendor requires one. It is the
 * default of the vendor's older API, which called it an `image_strength` of 0.35.
 */
const usualStrength = 0.65;

/** The service of a model. */
export interface StabilityService {
  readonly path: string;
  /** Fields of every request. */
  readonly fields: JsonObject;
  /** Whether it makes images from a prompt alone, or from an image. */
  readonly takes: 'prompt' | 'image' | 'both';
  readonly takesMask: boolean;
  /** Whether an edit may have another shape than its image. */
  readonly shapesEdits: boolean;
  readonly hasWebp: boolean;
}

const root = '/v2beta/stable-image';

/** Services by name: `stable-image-ultra`. Every other model is one of Stable Diffusion 3. */
export function stabilityService(model: string): StabilityService {
  const common = { fields: {}, takesMask: false, shapesEdits: false, hasWebp: true };
  switch (model) {
    case 'stable-image-ultra':
      return { ...common, path: `${root}/generate/ultra`, takes: 'both', shapesEdits: true };
    case 'stable-image-core':
      return { ...common, path: `${root}/generate/core`, takes: 'prompt' };
    case 'stable-image-inpaint':
      return { ...common, path: `${root}/edit/inpaint`, takes: 'image', takesMask: true };
    default:
      return { ...common, path: `${root}/generate/sd3`, fields: { model }, takes: 'both', hasWebp: false };
  }
}

/** The fields of a request's form, except its files. @throws ApiError 400 naming what the service does not support. */
export function composeStabilityFields(service: StabilityService, request: ImageRequest): JsonObject {
  const { job, prompt, format, own } = request;
  checkRequest(service, request);
  const isEdit = job.images.length > 0;
  return {
    // Inpainting uses its mask instead.
    ...(isEdit && !service.takesMask && { strength: usualStrength }),
    ...own,
    ...service.fields,
    prompt,
    ...(isEdit && service.fields.model !== undefined && { mode: 'image-to-image' }),
    ...shapeOf(request),
    ...(format && { output_format: format }),
  };
}

function checkRequest(service: StabilityService, request: ImageRequest): void {
  const { job, size, format } = request;
  const { images, mask } = job;
  refuseSeveral(request);
  refuseCompression(request);
  if (format === 'webp' && !service.hasWebp) throw unsupportedField('output_format', 'the model has png and jpeg');
  if (images.length === 0 && service.takes === 'image') throw unsupportedField('model', 'it changes images alone');
  if (images.length > 0 && service.takes === 'prompt') throw unsupportedField('image', 'the model takes no images');
  if (images.length > 1) throw unsupportedField('image', 'the model takes one image');
  if (mask !== null && !service.takesMask) throw unsupportedField('mask', 'the model takes no masks');
  if (size !== undefined && images.length > 0 && !service.shapesEdits) {
    throw unsupportedField('size', 'what the model changes keeps the shape of its image');
  }
}

/** The vendor paints about one megapixel, whatever the shape. */
function shapeOf({ size }: ImageRequest): JsonObject {
  if (size === undefined) return {};
  nearestResolution(size, '1K');
  return { aspect_ratio: nearestShape(size, shapes) };
}

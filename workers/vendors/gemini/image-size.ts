import type { ImageSize } from '../support/image-request.ts';
import { nearestResolution, nearestShape } from '../support/image-shape.ts';
import type { JsonObject } from '../support/json-object.ts';

/** The aspect ratios that Gemini supports (https://ai.google.dev/gemini-api/docs/image-generation#aspect_ratios). */
const shapes = ['1:1', '2:3', '3:2', '3:4', '4:3', '4:5', '5:4', '9:16', '16:9', '21:9'] as const;

/**
 * `imageConfig` for a size such as `1536x1024`: an aspect ratio and one of three resolutions, of which 1K is omitted, because
 * some models support no other.
 * @throws ApiError 400 for a size without one of Gemini's aspect ratios.
 */
export function toImageConfig(size: ImageSize): JsonObject {
  const resolution = nearestResolution(size, '4K');
  return { aspectRatio: nearestShape(size, shapes), ...(resolution !== '1K' && { imageSize: resolution }) };
}

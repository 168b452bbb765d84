import type { ImageSize } from './image-request.ts';
import type { JsonObject } from './json-object.ts';
import { unsupportedField } from './unsupported-field.ts';

/** The formats that Gemini paints (https://ai.google.dev/gemini-api/docs/image-generation#aspect_ratios). */
const ratios: readonly (readonly [width: number, height: number])[] = [
  [1, 1],
  [2, 3],
  [3, 2],
  [3, 4],
  [4, 3],
  [4, 5],
  [5, 4],
  [9, 16],
  [16, 9],
  [21, 9],
];

/** How far a size may be off the format it is taken for: Gemini's own sizes are up to 3 % off theirs. */
const tolerance = 1.04;
/** The sides of squares of 1K, 2K and 4K lie at powers of two; between two of them the nearer one counts. */
const [upTo1K, upTo2K, upTo4K] = [1448, 2896, 5792];

/**
 * `imageConfig` for a size such as `1536x1024`: Gemini is told a format and one of three resolutions, of which 1K goes
 * unsaid, because some models know no other.
 * @throws ApiError 400 for a size that is none of Gemini's formats.
 */
export function toImageConfig({ width, height }: ImageSize): JsonObject {
  const off = ([w, h]: readonly [number, number]): number => Math.abs(Math.log((width * h) / (height * w)));
  const nearest = ratios.reduce((best, ratio) => (off(ratio) < off(best) ? ratio : best));
  if (off(nearest) > Math.log(tolerance)) {
    const list = ratios.map((ratio) => ratio.join(':')).join(', ');
    throw unsupportedField('size', `the model's vendor paints in the formats ${list}`);
  }
  return { aspectRatio: nearest.join(':'), ...resolutionOf(Math.sqrt(width * height)) };
}

function resolutionOf(side: number): JsonObject {
  if (side <= upTo1K) return {};
  if (side <= upTo2K) return { imageSize: '2K' };
  if (side <= upTo4K) return { imageSize: '4K' };
  throw unsupportedField('size', "the model's vendor paints at most 4096x4096 pixels");
}

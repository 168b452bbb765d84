import type { ImageSize } from './image-request.ts';
import { unsupportedField } from './unsupported-field.ts';

/** How far a size may be off the shape it is taken for: vendors' own sizes are up to 3 % off theirs. */
const tolerance = 1.04;

/**
 * The shape that a size has, for vendors that know no sizes.
 * @param shapes those of the vendor: `16:9`
 * @throws ApiError 400 for a size that is near none of them.
 */
export function nearestShape({ width, height }: ImageSize, shapes: readonly [string, ...string[]]): string {
  const off = (shape: string): number => {
    const [w = 1, h = 1] = shape.split(':').map(Number);
    return Math.abs(Math.log((width * h) / (height * w)));
  };
  const nearest = shapes.reduce((best, shape) => (off(shape) < off(best) ? shape : best));
  if (off(nearest) <= Math.log(tolerance)) return nearest;
  throw unsupportedField('size', `the model's vendor paints in the formats ${shapes.join(', ')}`);
}

/** The sides of squares of 1K, 2K and 4K lie at powers of two; between two of them the nearer one counts. */
const resolutions = [
  ['1K', 1448],
  ['2K', 2896],
  ['4K', 5792],
] as const;

/** How finely an image of about so many pixels is painted. */
export type Resolution = (typeof resolutions)[number][0];

/**
 * The resolution that a size comes nearest to.
 * @param finest that of the vendor
 * @throws ApiError 400 for a size that is beyond it.
 */
export function nearestResolution({ width, height }: ImageSize, finest: Resolution): Resolution {
  const side = Math.sqrt(width * height);
  for (const [name, upTo] of resolutions) {
    if (side <= upTo) return name;
    if (name === finest) break;
  }
  throw unsupportedField('size', `the model's vendor paints nothing finer than ${finest}`);
}

import type { ImageSize } from './image-request.ts';
import { unsupportedField } from './unsupported-field.ts';

/** Tolerated factor between a size's shape and a vendor's: vendors' own sizes are up to 3 % off theirs. */
const tolerance = 1.04;

/**
 * The nearest shape of a size, for vendors that take no sizes.
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

/** The sides of squares of 1K, 2K and 4K are powers of two; sizes between two of them count as the nearer one. */
const resolutions = [
  ['1K', 1448],
  ['2K', 2896],
  ['4K', 5792],
] as const;

/** The resolution of an image of about that many pixels. */
export type Resolution = (typeof resolutions)[number][0];

/**
 * The nearest resolution of a size.
 * @param finest that of the vendor
 * @throws ApiError 400 for a size beyond it.
 */
export function nearestResolution({ width, height }: ImageSize, finest: Resolution): Resolution {
  const side = Math.sqrt(width * height);
  for (const [name, upTo] of resolutions) {
    if (side <= upTo) return name;
    if (name === finest) break;
  }
  throw unsupportedField('size', `the model's vendor paints nothing finer than ${finest}`);
}

import { aspectRatio, type ImageSize } from './image-request.ts';
import { unsupportedField } from './unsupported-field.ts';

/** Tolerated factor between a size's shape and a vendor's: vendors' own sizes are up to 3 % off theirs. */
const tolerance = 1.04;

/**
 * The nearest shape of a size, for vendors that take no sizes.
 * @param shapes those of the vendor: `16:9`
 * @throws ApiError 400 for a size that is near none of them.
 */
export function nearestShape(size: ImageSize, shapes: Shapes): string {
  const nearest = nearShape(size, shapes);
  if (nearest !== undefined) return nearest;
  throw unsupportedField('size', `the model's vendor paints in the formats ${shapes.join(', ')}`);
}

type Shapes = readonly [string, ...string[]];

function nearShape({ width, height }: ImageSize, shapes: Shapes): string | undefined {
  const off = (shape: string): number => {
    const [w = 1, h = 1] = shape.split(':').map(Number);
    return Math.abs(Math.log((width * h) / (height * w)));
  };
  const nearest = shapes.reduce((best, shape) => (off(shape) < off(best) ? shape : best));
  return off(nearest) <= Math.log(tolerance) ? nearest : undefined;
}

/** Shapes in the lists of aspect ratios of fal's and Replicate's models, each of which takes most of them. */
const commonShapes: Shapes = [
  '1:1',
  ...['5:4', '4:3', '3:2', '16:10', '16:9', '21:9', '3:1'],
  ...['4:5', '3:4', '2:3', '10:16', '9:16', '9:21', '1:3'],
];

/**
 * A size as an aspect ratio for models that refuse all but those of their list, and whose lists differ: the nearest common one
 * (1792 x 1024 is `16:9`), else its own, of which the vendor decides.
 */
export function commonShape(size: ImageSize): string {
  return nearShape(size, commonShapes) ?? aspectRatio(size);
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

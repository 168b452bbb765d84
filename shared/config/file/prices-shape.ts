import { z } from 'zod';
import { camelKeys, list, mapping, named, text, whole } from './shapes.ts';

/** By what a price of tokens is multiplied: dollars for a million → whole nano-dollars for a thousand. */
const forTokens = 1_000_000;
/** Dollars → nano-dollars. */
const forOne = 1_000_000_000;

/** How far from a whole nano-dollar a price may be. */
const tolerance = 0.001;

/** A price in dollars, read as nano-dollars. `most` catches a price that was meant for a million of what it is for. */
function dollars(scale: number, most: number) {
  const message = 'expected a number >= 0';
  return z
    .number(message)
    .min(0, message)
    .max(most, `expected at most ${most} dollars`)
    .refine((price) => isWhole(price * scale), `expected a multiple of ${1 / scale} dollars`)
    .transform((price) => Math.round(price * scale));
}

function isWhole(price: number): boolean {
  return Math.abs(Math.round(price) - price) <= price * tolerance;
}

const tokens = () => dollars(forTokens, 100_000).optional();

/** Of something that there are few of in a request. */
const each = () => dollars(forOne, 1000);

const tokenPrices = { input: tokens(), cached_input: tokens(), cache_write: tokens(), output: tokens() };

/** Prices in US dollars: for a million tokens, for an image, a second, a character, a request; read as the catalogue has them. */
export const pricesShape = mapping({
  ...tokenPrices,
  image_output: tokens(),
  audio_input: tokens(),
  image: each().optional(),
  image_kinds: named(text('a size, a quality or both', 64), each()).optional(),
  second: each().optional(),
  character: dollars(forOne, 1).optional(),
  request: z
    .union(
      [each(), mapping({ low: each(), medium: each(), high: each() })],
      'expected dollars, or low, medium and high',
    )
    .optional(),
  above: list(
    mapping({ tokens: whole(1, 1_000_000_000), ...tokenPrices }).transform(camelKeys),
    'mappings with tokens and prices',
    0,
  ).optional(),
}).transform(camelKeys);

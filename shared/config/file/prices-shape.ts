import { z } from 'zod';
import { isStandardTier, tierName } from '../../money/service-tier.ts';
import { camelKeys, list, mapping, named, text, whole } from './shapes.ts';

/** Multiplier for token prices: dollars per million → whole nano-dollars per thousand. */
const forTokens = 1_000_000;
/** Dollars → nano-dollars. */
const forOne = 1_000_000_000;

/** Maximum deviation of a price from a whole nano-dollar. */
const tolerance = 0.001;

/** A price in dollars, converted to nano-dollars. `max` catches a price that was meant per million. */
function dollars(scale: number, max: number) {
  const message = 'expected a number >= 0';
  return z
    .number(message)
    .min(0, message)
    .max(max, `expected at most ${max} dollars`)
    .refine((price) => isWhole(price * scale), `expected a multiple of ${1 / scale} dollars`)
    .transform((price) => Math.round(price * scale));
}

function isWhole(price: number): boolean {
  return Math.abs(Math.round(price) - price) <= price * tolerance;
}

const tokens = () => dollars(forTokens, 100_000).optional();

/** Price of an item that occurs few times per request. */
const each = () => dollars(forOne, 1000);

const tokenPrices = { input: tokens(), cached_input: tokens(), cache_write: tokens(), output: tokens() };

/** All prices of tokens. */
const allTokenPrices = {
  ...tokenPrices,
  image_output: tokens(),
  audio_input: tokens(),
  image_input: tokens(),
  above: list(
    mapping({ tokens: whole(1, 1_000_000_000), ...tokenPrices }).transform(camelKeys),
    'mappings with tokens and prices',
    0,
  )
    .refine(
      (steps) => new Set(steps.map(({ tokens: above }) => above)).size === steps.length,
      'expected one step for each number of tokens',
    )
    // The catalogue has them in ascending order, and a request is charged by the last one that it exceeds.
    .transform((steps) => [...steps].sort((one, other) => one.tokens - other.tokens))
    .optional(),
};

/** What names the images of a price as requests do not: `1792X1024`, `hd 1792x1024`. They would be charged as any other. */
const unknownKind = /\d[X×]\d|\s\d+x\d+$/;
const kind = 'a size (1792x1024), a quality (hd), or both in this order';
const imageKind = text(kind, 64).refine((name) => !unknownKind.test(name), `expected ${kind}`);

/** Maximum factor of a service tier: a larger one was meant as a price. */
const maxFactor = 100;
const factor = `expected a number > 0 and <= ${maxFactor}, or prices of tokens`;

/** The standard tier has the model's own prices, `auto` is any, and `fast` is another name of `priority`. */
const tierKey = text('the name of a service tier', 32).refine(
  (name) => tierName(name) === name && name !== 'auto' && !isStandardTier(name),
  'expected the name of a service tier other than the standard one, such as flex or priority',
);

/** Prices at a service tier: all of the model's prices times a number, or prices of tokens. */
const tier = z.union(
  [
    z.number(factor).positive(factor).max(maxFactor, factor),
    mapping(allTokenPrices)
      .transform(camelKeys)
      // An empty list of steps is none.
      .transform(({ above, ...prices }) => ({ ...prices, ...(above !== undefined && above.length > 0 && { above }) })),
  ],
  factor,
);

/** Prices in US dollars: per million tokens, per image, second, character, request; converted to the catalogue's units. */
export const pricesShape = mapping({
  ...allTokenPrices,
  image: each().optional(),
  image_kinds: named(imageKind, each()).optional(),
  second: each().optional(),
  character: dollars(forOne, 1).optional(),
  request: z
    .union(
      [each(), mapping({ low: each(), medium: each(), high: each() })],
      'expected dollars, or low, medium and high',
    )
    .optional(),
  tiers: named(tierKey, tier).optional(),
}).transform(camelKeys);

import type { Model } from '../catalogue/models.ts';

/** A model's prices in the catalogue: nano-dollars, token prices per thousand. */
export type Prices = NonNullable<Model['prices']>;

/** Token prices for one request, in nano-dollars per thousand. */
export interface TokenPrices {
  readonly input: number;
  readonly cachedInput: number;
  readonly cacheWrite: number;
  readonly audioInput: number;
  readonly output: number;
  readonly imageOutput: number;
}

/**
 * Token prices for a request with missing ones filled in: input of all kinds costs as much as input, images in the answer as
 * much as output, and prices missing altogether are 0.
 * @param above the prices for longer requests; prices it leaves out stay as below
 */
export function tokenPrices(prices: Prices, above?: NonNullable<Prices['above']>[number]): TokenPrices {
  const input = above?.input ?? prices.input ?? 0;
  const output = above?.output ?? prices.output ?? 0;
  return {
    input,
    cachedInput: above?.cachedInput ?? prices.cachedInput ?? input,
    cacheWrite: above?.cacheWrite ?? prices.cacheWrite ?? input,
    audioInput: prices.audioInput ?? input,
    output,
    imageOutput: prices.imageOutput ?? output,
  };
}

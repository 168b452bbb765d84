import type { Model } from '../catalogue/models.ts';

/** What a model costs, as the catalogue has it: nano-dollars, those of tokens for a thousand. */
export type Prices = NonNullable<Model['prices']>;

/** What the tokens of one request cost, in nano-dollars for a thousand. */
export interface TokenPrices {
  readonly input: number;
  readonly cachedInput: number;
  readonly cacheWrite: number;
  readonly audioInput: number;
  readonly output: number;
  readonly imageOutput: number;
}

/**
 * The prices of a request's tokens, those that are missing filled in: input of all kinds costs as input does, images in the
 * answer as output does, and what is missing altogether is free.
 * @param above one of the prices for longer requests; what it leaves out costs as it does below
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

import type { ModelPrices } from '../../api/models.ts';
import { money } from '../../format/money.ts';

/** What there is beside the prices of input and output: `cached $0.50 · picture $0.04 each`. */
export function otherPrices(prices: ModelPrices | null): string {
  if (prices === null) return '';
  const named = [
    ['cached', prices.cached_input, ''],
    ['cache write', prices.cache_write, ''],
    ['picture tokens', prices.image_output, ''],
    ['sound tokens', prices.audio_input, ''],
    ['picture', prices.image, ' each'],
    ['second', prices.second, ' each'],
    ['character', prices.character, ' each'],
  ] as const;
  const told = named.filter(([, price]) => price !== null && price !== undefined);
  const texts = told.map(([name, price, unit]) => `${name} ${money(price)}${unit}`);
  const above = prices.above?.map((step) => `above ${(step.tokens ?? 0).toLocaleString('en-US')} tokens dearer`) ?? [];
  return [...texts, ...above].join(' · ');
}

import type { ModelPrices, RequestPrice } from '../../api/models.ts';
import { money } from '../../format/money.ts';

/** Prices other than those of input and output: `cached $0.50 · picture $0.04 each`. */
export function otherPrices(prices: ModelPrices | null): string {
  if (prices === null) return '';
  const named = [
    ['cached', prices.cached_input, ''],
    ['cache write', prices.cache_write, ''],
    ['picture tokens', prices.image_output, ''],
    ['sound tokens', prices.audio_input, ''],
    ['picture input tokens', prices.image_input, ''],
    ['picture', prices.image, ' each'],
    ['second', prices.second, ' each'],
    ['character', prices.character, ' each'],
  ] as const;
  const known = named.filter(([, price]) => price !== null && price !== undefined);
  const texts = known.map(([name, price, unit]) => `${name} ${money(price)}${unit}`);
  const above = prices.above?.map((step) => `above ${(step.tokens ?? 0).toLocaleString('en-US')} tokens dearer`) ?? [];
  const kinds = Object.entries(prices.image_kinds ?? {}).map(([kind, price]) => `picture ${kind} ${money(price)}`);
  return [...texts, ...kinds, ...requestTexts(prices.request), ...above].join(' · ');
}

/** `request $0.005 each`, or `request $0.005, $0.008, $0.012 by search context (low, medium, high)`. */
function requestTexts(price: RequestPrice | null | undefined): string[] {
  if (price === null || price === undefined) return [];
  if (typeof price === 'number') return [`request ${money(price)} each`];
  const { low, medium, high } = price;
  return [`request ${[low, medium, high].map(money).join(', ')} by search context (low, medium, high)`];
}

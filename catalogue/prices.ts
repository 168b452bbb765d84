import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Model } from '../shared/catalogue/model.ts';
import type { ModelsDevFact } from './models-dev.ts';
import type { PiAiModel } from './pi-ai.ts';
import { unpack } from './sources.ts';

type Prices = NonNullable<Model['prices']>;

/** Dollars per million tokens → nano-dollars per thousand tokens. */
const perThousand = (dollars: number): number => Math.round(dollars * 1_000_000);

/** Dollars → nano-dollars. */
export const nano = (dollars: number): number => Math.round(dollars * 1_000_000_000);

interface PiAiCost {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

/** A cache price of 0 means unknown. */
const tokenPrices = ({ input, output, cacheRead, cacheWrite }: PiAiCost) => ({
  input: perThousand(input),
  ...(cacheRead > 0 && { cachedInput: perThousand(cacheRead) }),
  ...(cacheWrite > 0 && { cacheWrite: perThousand(cacheWrite) }),
  output: perThousand(output),
});

/** pi-ai's prices of a model; undefined if unknown. */
export function pricesOfPiAi({ cost }: PiAiModel): Prices | undefined {
  if (cost.input === 0 && cost.output === 0) return undefined;
  const above = cost.tiers?.map((tier) => ({ tokens: tier.inputTokensAbove, ...tokenPrices(tier) }));
  return { ...tokenPrices(cost), ...(above && above.length > 0 && { above }) };
}

/** models.dev's prices of a model. */
export function pricesOfModelsDev({ cost }: ModelsDevFact): Prices | undefined {
  if (cost === undefined || (cost.input === 0 && cost.output === 0)) return undefined;
  const { input, output, cached = 0, write = 0 } = cost;
  return tokenPrices({ input, output, cacheRead: cached, cacheWrite: write });
}

type Price = number | { base: number } | undefined;
type PriceList = Record<string, Price>;

interface Match {
  or?: Match[];
  and?: Match[];
  equals?: string;
  starts_with?: string;
  ends_with?: string;
  contains?: string;
  regex?: string;
}

interface GenaiPrices {
  findProvider(options: { providerId: string }): { models: GenaiModel[] } | undefined;
}

interface GenaiModel {
  match: Match;
  prices: PriceList | { constraint?: { type: string; start_date?: string }; prices: PriceList }[];
}

const genaiPrices = (await import(
  pathToFileURL(join(unpack('@pydantic/genai-prices'), 'dist', 'index.js')).href
)) as GenaiPrices;

function matches(match: Match, id: string): boolean {
  if (match.or) return match.or.some((one) => matches(one, id));
  if (match.and) return match.and.every((one) => matches(one, id));
  if (match.equals !== undefined) return id === match.equals;
  if (match.starts_with !== undefined) return id.startsWith(match.starts_with);
  if (match.ends_with !== undefined) return id.endsWith(match.ends_with);
  if (match.contains !== undefined) return id.includes(match.contains);
  return match.regex !== undefined && new RegExp(match.regex).test(id);
}

/** The prices of `day`, if they change over time: the latest that have started. Prices for some hours only are ignored. */
function pricesOn(day: string, prices: GenaiModel['prices']): PriceList {
  if (!Array.isArray(prices)) return prices;
  const started = prices.filter(
    ({ constraint }) =>
      constraint === undefined || (constraint.type === 'start_date' && (constraint.start_date ?? '') <= day),
  );
  return started.at(-1)?.prices ?? {};
}

/** The prices in genai-prices for a model at one of its vendors on a day; undefined if it has none in our units. */
export function pricesOfGenai(vendor: string, id: string, day: string): Prices | undefined {
  const models = genaiPrices.findProvider({ providerId: vendor })?.models ?? [];
  const found = models.find(({ match }) => matches(match, id));
  if (found === undefined) return undefined;
  const list = pricesOn(day, found.prices);
  const dollars = (name: string): number | undefined => {
    const price = list[name];
    return typeof price === 'object' ? price.base : price;
  };
  const tokens = (field: keyof Prices, name: string) => {
    const price = dollars(name);
    return price === undefined ? {} : { [field]: perThousand(price) };
  };
  const hour = dollars('input_audio_hours');
  const known: Prices = {
    ...tokens('input', 'input_mtok'),
    ...tokens('cachedInput', 'cache_read_mtok'),
    ...tokens('cacheWrite', 'cache_write_mtok'),
    ...tokens('output', 'output_mtok'),
    ...tokens('audioInput', 'input_audio_mtok'),
    ...tokens('imageInput', 'input_image_mtok'),
    ...tokens('imageOutput', 'output_image_mtok'),
    ...(hour !== undefined && { second: nano(hour / 3600) }),
  };
  return Object.keys(known).length === 0 ? undefined : known;
}

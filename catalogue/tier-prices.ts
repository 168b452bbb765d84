import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { Prices, TokenPriceList } from '../shared/money/cost.ts';

const dollars = z.number().min(0).optional();
const long = { input: dollars, cachedInput: dollars, cacheWrite: dollars, output: dollars };
const prices = z.strictObject({
  ...long,
  audioInput: dollars,
  imageOutput: dollars,
  above: z.array(z.strictObject({ tokens: z.int(), ...long })).optional(),
});

/** Dollars per million tokens. */
export type TierPrices = z.infer<typeof prices>;

/** The extract's file: by `<vendor>/<model>` the prices of its standard tier, by which the others are measured, and theirs. */
export const tierPricesFile = z.strictObject({
  source: z.string(),
  version: z.string(),
  /** When it was read. */
  date: z.iso.date(),
  models: z.record(z.string(), z.record(z.string(), prices)),
});

/** Location of the extract. */
export const tierPricesPath = new URL('./tier-prices.json', import.meta.url);

/** Reads the extract (see extract-tier-prices.ts). */
export function readTierPrices(): z.infer<typeof tierPricesFile> {
  return tierPricesFile.parse(JSON.parse(readFileSync(tierPricesPath, 'utf8')));
}

/**
 * Vendors with one price for all models at a tier, by the standard ones. Groq: https://console.groq.com/docs/flex-processing, "Pricing
 * matches the on-demand tier". (Its performance tier is provisioned, and has no price for tokens.)
 */
const ofVendors: Readonly<Record<string, Prices['tiers']>> = { groq: { flex: 1 } };

const extract = readTierPrices();

/**
 * The prices of a model's service tiers. The list's standard prices may differ from the catalogue's, which are of other days: the
 * relation of a tier to the standard one is taken from it.
 * @param name `vendor/model`, with the vendor's name of the model
 * @param standard the model's prices here
 * @returns a number for a tier where all prices have the same relation
 */
export function tiersOf(name: string, standard: Prices | undefined): Pick<Prices, 'tiers'> {
  if (standard === undefined) return {};
  const { standard: base, ...listed } = extract.models[name] ?? {};
  const [vendor = ''] = name.split('/', 1);
  const tiers = Object.entries(base === undefined ? {} : listed).map(([tier, prices]) => [
    tier,
    tierOf(standard, base as TierPrices, prices),
  ]);
  const all = { ...ofVendors[vendor], ...Object.fromEntries(tiers) };
  return Object.keys(all).length === 0 ? {} : { tiers: all };
}

type Kinds = Omit<TokenPriceList, 'above'>;

/** A factor that was meant as one, without the error of a division; undefined for any other. */
function simple(factor: number): number | undefined {
  const rounded = Number(factor.toFixed(2));
  return Math.abs(rounded - factor) < 1e-9 ? rounded : undefined;
}

function tierOf(standard: Prices, base: TierPrices, tier: TierPrices): number | TokenPriceList {
  const names = ['input', 'cachedInput', 'cacheWrite', 'output', 'audioInput', 'imageOutput'] as const;
  const factors = new Set<number | undefined>();
  const scaled = (own: Kinds, from: Kinds = {}, to: Kinds = {}): Kinds =>
    Object.fromEntries(
      names.flatMap((name) => {
        const [price, before, after] = [own[name], from[name], to[name]];
        if (price === undefined) return [];
        const factor = before && after ? after / before : undefined;
        factors.add(factor && simple(factor));
        return factor === undefined ? [] : [[name, Math.round(price * factor)]];
      }),
    );
  const own = scaled(standard, base, tier);
  const above = (standard.above ?? []).map(({ tokens, ...longer }) => {
    const step = (of: TierPrices): Kinds | undefined => of.above?.find((each) => each.tokens === tokens);
    return { tokens, ...scaled(longer, step(base), step(tier)) };
  });
  const [factor] = factors;
  if (factors.size === 1 && factor !== undefined) return factor;
  const known = above.filter((step) => Object.keys(step).length > 1);
  return { ...own, ...(known.length > 0 && { above: known }) };
}

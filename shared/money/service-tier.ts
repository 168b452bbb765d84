import type { Prices, TokenPriceList } from './cost.ts';

/** Service tiers at a model's own prices, by the vendors' names for them. */
const standardTiers: ReadonlySet<string> = new Set(['default', 'standard', 'standard_only', 'on_demand']);

/**
 * The name of a service tier, from a caller or a vendor; undefined if it cannot be one. OpenAI has two names for its priority tier.
 */
export function tierName(tier: unknown): string | undefined {
  if (typeof tier !== 'string' || !/^[\w-]{1,32}$/.test(tier)) return undefined;
  return tier === 'fast' ? 'priority' : tier;
}

/** Whether a service tier is the vendors' standard one, or none is named. */
export function isStandardTier(tier: unknown): boolean {
  return tier === undefined || tier === null || standardTiers.has(tier as string);
}

/** The service tier in a recorded usage (see `chargeFor`); null if there is none. */
export function recordedTier(usage: unknown): string | null {
  if (typeof usage !== 'object' || usage === null) return null;
  return tierName((usage as { readonly service_tier?: unknown }).service_tier) ?? null;
}

/** Made once for each price list and tier. */
const known = new WeakMap<Prices, Map<string, Prices>>();

/**
 * A model's prices at a service tier other than the standard one; undefined if the tier has no price. What a tier's list leaves
 * out is at least as dear as the model's own price and as the tier's price of input (or output): what is unknown must not be cheap.
 * @param tier as `tierName` returns it
 */
export function pricesAt(prices: Prices | undefined, tier: string): Prices | undefined {
  const { tiers } = prices ?? {};
  if (prices === undefined || tiers === undefined || !Object.hasOwn(tiers, tier)) return undefined;
  const made = known.get(prices) ?? new Map<string, Prices>();
  known.set(prices, made);
  let found = made.get(tier);
  if (found === undefined) {
    const { tiers: _tiers, ...standard } = prices;
    const listed = tiers[tier] as number | TokenPriceList;
    found = typeof listed === 'number' ? times(standard, listed) : withList(standard, listed);
    made.set(tier, found);
  }
  return found;
}

/** Multiplies every price. */
function times(prices: Prices, factor: number): Prices {
  const scaled = <Value>(value: Value): Value => {
    if (typeof value === 'number') return Math.ceil(round(value * factor)) as Value;
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, price]) => [name, scaled(price)])) as Value;
  };
  const { above, ...rest } = prices;
  return {
    ...scaled(rest),
    ...(above && { above: above.map(({ tokens, ...longer }) => ({ tokens, ...scaled(longer) })) }),
  };
}

/** Removes the error of a multiplication: 0.07 × 100 is 7.000000000000001. */
function round(price: number): number {
  return Number(price.toPrecision(15));
}

function withList(standard: Prices, list: TokenPriceList): Prices {
  const input = list.input ?? standard.input;
  const output = list.output ?? standard.output;
  /** A price that the list leaves out, if the model has it. */
  const own = <Name extends 'cachedInput' | 'cacheWrite' | 'audioInput' | 'imageInput' | 'imageOutput'>(
    name: Name,
    base = 0,
  ) => {
    const price = list[name] ?? (standard[name] === undefined ? undefined : Math.max(standard[name], base));
    return price === undefined ? {} : ({ [name]: price } as { [Key in Name]: number });
  };
  const above = list.above ?? standard.above?.map((longer) => dearer(longer, list, { input, output }));
  return {
    ...standard,
    ...(input !== undefined && { input }),
    ...(output !== undefined && { output }),
    ...own('cachedInput', input),
    ...own('cacheWrite', input),
    ...own('audioInput', input),
    ...own('imageInput', input),
    ...own('imageOutput', output),
    ...(above && { above }),
  };
}

/** The prices of long requests at a tier that lists none: the dearer ones of the model's for them and of the tier's for short ones. */
function dearer(
  longer: NonNullable<Prices['above']>[number],
  { cachedInput, cacheWrite }: TokenPriceList,
  { input = 0, output = 0 }: { readonly input: number | undefined; readonly output: number | undefined },
): NonNullable<Prices['above']>[number] {
  const longInput = Math.max(input, longer.input ?? 0);
  return {
    tokens: longer.tokens,
    input: longInput,
    output: Math.max(output, longer.output ?? 0),
    cachedInput: Math.max(cachedInput ?? input, longer.cachedInput ?? longInput),
    cacheWrite: Math.max(cacheWrite ?? input, longer.cacheWrite ?? longInput),
  };
}

/** What is known of the service tier of an answer. */
export interface TierFacts {
  /** What the request has asked for (`FeeFacts.tier`); undefined for the standard tier. */
  readonly asked: string | undefined;
  /** What each call of the vendor says that it has used, as `tierName` returns it. */
  readonly said: readonly (string | undefined)[];
  /** The dearest tier that the vendor may choose for `auto`. */
  readonly auto: string | undefined;
  /** Whether the answer was interrupted: then nothing that its vendor has said is final. */
  readonly isInterrupted?: boolean;
}

/** A service tier, undefined for the standard one, and its prices. */
export interface PricedTier {
  readonly tier: string | undefined;
  readonly prices: Prices | undefined;
}

/**
 * The service tiers that an answer may be charged by, of which the dearest counts: the one that its vendor says it has used. If that
 * has no known price, or nothing is said, also the standard tier and the requested one; if the answer was interrupted, also the
 * requested one.
 */
export function tiersToCharge(prices: Prices | undefined, facts: TierFacts): readonly PricedTier[] {
  const standard = { tier: undefined, prices };
  if (prices?.tiers === undefined) return [standard];
  const { asked, said, auto, isInterrupted = false } = facts;
  const priced = (tier: string | undefined): PricedTier[] => {
    const own = tier === undefined ? undefined : pricesAt(prices, tier);
    return own === undefined ? [] : [{ tier, prices: own }];
  };
  const used = said.map((tier) => (tier !== undefined && standardTiers.has(tier) ? [standard] : priced(tier)));
  const isKnown = used.length > 0 && used.every((tiers) => tiers.length > 0);
  if (isKnown && !isInterrupted) return used.flat();
  const isStandardMeant = !isKnown || asked === undefined;
  return [...used.flat(), ...(isStandardMeant ? [standard] : []), ...priced(asked === 'auto' ? auto : asked)];
}

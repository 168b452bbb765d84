import type { Prices } from './prices.ts';

/** How much of what a search has found its model is shown (`web_search_options.search_context_size`), the least first. */
export const searchContextSizes = ['low', 'medium', 'high'] as const;

/** A size of the search context. */
export type SearchContextSize = (typeof searchContextSizes)[number];

/** What of a request the prices of requests and images depend on. */
export interface FeeFacts {
  /** The search context that it asks for; left out: `low`, which is what vendors take where it asks for none. */
  readonly searchContext?: SearchContextSize | undefined;
  /** As how many requests it counts: a legacy completion as many as it has prompts. Left out: one. */
  readonly requests?: number | undefined;
  /** The size and the quality of the images that it asks for, as its caller wrote them; left out: the usual ones. */
  readonly imageSize?: string | undefined;
  readonly imageQuality?: string | undefined;
}

type RequestPrice = NonNullable<Prices['request']>;

/**
 * The size of the search context that a request's `web_search_options` ask for; undefined for the least. A size that nobody
 * knows here counts as the largest.
 */
export function askedSearchContext(options: unknown): SearchContextSize | undefined {
  if (typeof options !== 'object' || options === null) return undefined;
  const { search_context_size: size } = options as { readonly search_context_size?: unknown };
  if (size === undefined || size === null || size === 'low') return undefined;
  return size === 'medium' ? 'medium' : 'high';
}

/** What a request costs beside everything else, by the size that its vendor tells, else by the one that was asked for. */
export function requestFee(
  price: RequestPrice,
  { searchContext = 'low', requests = 1 }: FeeFacts,
  told: unknown,
): bigint {
  const size = searchContextSizes.find((known) => known === told) ?? searchContext;
  return BigInt(requests) * BigInt(typeof price === 'number' ? price : price[size]);
}

/** The most that one request costs: no size below the one that is asked for counts for more, or asking for more would save. */
export function highestRequestPrice(price: RequestPrice | undefined, size: SearchContextSize): number {
  if (typeof price !== 'object') return price ?? 0;
  return Math.max(...searchContextSizes.slice(0, searchContextSizes.indexOf(size) + 1).map((each) => price[each]));
}

/** What one image costs, by the size and the quality that were asked for; undefined where images have no price. */
export function imagePrice(prices: Prices, fee: FeeFacts): number | undefined {
  return imagePricesOf(prices, fee)[0] ?? prices.image;
}

/** The most that one image costs: what is asked for beside never takes a price away, or asking for more would save. */
export function highestImagePrice(prices: Prices, fee: FeeFacts): number {
  return Math.max(prices.image ?? 0, ...imagePricesOf(prices, fee));
}

/** The prices of its own that images of a size and a quality may have, the one that names most first. */
function imagePricesOf({ imageKinds }: Prices, { imageSize: size, imageQuality: quality }: FeeFacts): number[] {
  if (imageKinds === undefined) return [];
  const kinds = [`${size} ${quality}`, `${size}`, `${quality}`];
  // Names may be the caller's text.
  return kinds.flatMap((kind) => (Object.hasOwn(imageKinds, kind) ? (imageKinds[kind] as number) : []));
}

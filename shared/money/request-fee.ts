import type { Prices } from './prices.ts';

/** How much of a search's results the model is shown (`web_search_options.search_context_size`), in ascending order. */
export const searchContextSizes = ['low', 'medium', 'high'] as const;

/** A size of the search context. */
export type SearchContextSize = (typeof searchContextSizes)[number];

/** Request facts that prices of requests and images depend on. */
export interface FeeFacts {
  /** The requested search context; left out: `low`, the vendors' default. */
  readonly searchContext?: SearchContextSize | undefined;
  /** The number of requests it counts as: a legacy completion as many as it has prompts. Left out: one. */
  readonly requests?: number | undefined;
  /** Size and quality of the requested images, as the caller wrote them; left out: the defaults. */
  readonly imageSize?: string | undefined;
  readonly imageQuality?: string | undefined;
}

type RequestPrice = NonNullable<Prices['request']>;

/** The search context size in a request's `web_search_options`; undefined for the smallest. An unknown size counts as the largest. */
export function askedSearchContext(options: unknown): SearchContextSize | undefined {
  if (typeof options !== 'object' || options === null) return undefined;
  const { search_context_size: size } = options as { readonly search_context_size?: unknown };
  if (size === undefined || size === null || size === 'low') return undefined;
  return size === 'medium' ? 'medium' : 'high';
}

/** The fee per request, by the size that the vendor reports, else by the requested one. */
export function requestFee(
  price: RequestPrice,
  { searchContext = 'low', requests = 1 }: FeeFacts,
  reportedSize: unknown,
): bigint {
  const size = searchContextSizes.find((known) => known === reportedSize) ?? searchContext;
  return BigInt(requests) * BigInt(typeof price === 'number' ? price : price[size]);
}

/** The maximum fee of one request: no smaller size may cost more, or requesting more would save money. */
export function highestRequestPrice(price: RequestPrice | undefined, size: SearchContextSize): number {
  if (typeof price !== 'object') return price ?? 0;
  return Math.max(...searchContextSizes.slice(0, searchContextSizes.indexOf(size) + 1).map((each) => price[each]));
}

/** The price of one image of the requested size and quality; undefined if images have no price. */
export function imagePrice(prices: Prices, fee: FeeFacts): number | undefined {
  return imagePricesOf(prices, fee)[0] ?? prices.image;
}

/** The maximum price of one image: further criteria never lower it, or requesting more would save money. */
export function highestImagePrice(prices: Prices, fee: FeeFacts): number {
  return Math.max(prices.image ?? 0, ...imagePricesOf(prices, fee));
}

/** The specific prices for images of a size and a quality, most specific first. */
function imagePricesOf({ imageKinds }: Prices, { imageSize: size, imageQuality: quality }: FeeFacts): number[] {
  if (imageKinds === undefined) return [];
  const kinds = [`${size} ${quality}`, `${size}`, `${quality}`];
  // Names may be text from the caller.
  return kinds.flatMap((kind) => (Object.hasOwn(imageKinds, kind) ? (imageKinds[kind] as number) : []));
}

import type { Capability } from '../capabilities/capability.ts';
import type { Model } from '../catalogue/models.ts';
import { maxAmount, readTokenCounts, type TokenCounts } from './token-counts.ts';

/** Usage not counted in tokens; unknown amounts are left out. */
export interface Quantities {
  /** Images in the answer. */
  readonly images?: number | undefined;
  /** Seconds of audio input, or of generated video. */
  readonly seconds?: number | undefined;
  /** Characters synthesized to speech. */
  readonly characters?: number | undefined;
}

type Usage = Readonly<Record<string, unknown>>;

/** Unit of the sums: a millionth of a nano-dollar, so that thousandths and fractions of seconds stay integers. */
const scale = 1_000_000n;
/** Token prices are per thousand. */
const tokenScale = scale / 1000n;
const maxCost = BigInt(Number.MAX_SAFE_INTEGER);

/**
 * The cost of a job in whole nano-dollars, rounded up once at the end.
 * @param prices of the route that served it
 * @param usage as its vendor reported it, or as estimated; see `readTokenCounts`
 * @param fee request facts that determine prices of requests and images, and of what is written to a cache
 * @param calls what `usage` is the sum of: prices by length are those of each call
 * @returns undefined if the cost is unknown: the model has no prices, or no priced amount is known except that of requests. Then what
 * was held is charged; without a hold nothing is, and the cost is recorded as null.
 */
export function costOf(
  prices: Prices | undefined,
  usage: Usage | null,
  quantities: Quantities = {},
  fee: FeeFacts = {},
  calls: readonly Usage[] = usage === null ? [] : [usage],
): number | undefined {
  if (prices === undefined) return undefined;
  const isOfImages = quantities.images !== undefined;
  const costs = hasTokenPrice(prices)
    ? calls.map((call) => costOfTokens(prices, readTokenCounts(call, isOfImages, fee.hourCache)))
    : [];
  const parts = [
    ...costs,
    costOfEach(imagePrice(prices, fee), quantities.images),
    costOfEach(prices.character, quantities.characters),
    costOfSeconds(prices.second, quantities.seconds ?? secondsOf(usage)),
  ].filter((part) => part !== undefined);
  const { request } = prices;
  if (parts.length === 0 && (request === undefined || hasAnyPrice({ ...prices, request: undefined }))) return undefined;
  const ofRequests = request === undefined ? 0n : requestFee(request, fee, usage?.search_context_size) * scale;
  const sum = parts.reduce((one, other) => one + other, ofRequests);
  const cost = (sum + scale - 1n) / scale;
  return Number(cost < maxCost ? cost : maxCost);
}

/** Whether any tokens have a price. */
export function hasTokenPrice({ input, output, audioInput, imageInput, imageOutput }: Prices): boolean {
  return (input ?? output ?? audioInput ?? imageInput ?? imageOutput) !== undefined;
}

/** Prices beside those of requests and tokens by which each capability is counted; of videos no tokens are, of embeddings those of input. */
const ownPrices: Readonly<Record<Capability, readonly (keyof Prices)[]>> = {
  chat: [],
  embedding: [],
  image: ['image', 'imageKinds'],
  transcription: ['second'],
  speech: ['character'],
  video: ['second'],
};

/** Whether a model has prices by none of which its capability is counted: everything would be free. */
export function areUncounted(prices: Prices, capability: Capability): boolean {
  const { output: _output, imageOutput: _images, ...ofInput } = prices;
  const isOfTokens = capability !== 'video' && hasTokenPrice(capability === 'embedding' ? ofInput : prices);
  const isCounted = isOfTokens || [...ownPrices[capability], 'request' as const].some((name) => isGiven(prices[name]));
  return !isCounted && hasAnyPrice(prices);
}

/** Prices of no kind are none: they remove those of the catalogue, and leave nothing where it has no other. */
function isGiven(price: Prices[keyof Prices]): boolean {
  return price !== undefined && (typeof price === 'number' || Object.keys(price).length > 0);
}

/** Whether anything may cost more than nothing at the standard tier. Who writes 0 means it. */
function hasAnyPrice({ tiers: _tiers, ...prices }: Prices): boolean {
  return Object.values(prices).some((price) => price !== undefined && price !== 0);
}

/**
 * What a vendor's prompt cache saved: how much more its cached tokens would have cost at the plain price of input. Whole
 * nano-dollars, rounded down; 0 without prices, and never less. What writing the cache may have cost more is not subtracted.
 * @param prices of the route that served it
 */
export function savedBy(prices: Prices | undefined, counts: Pick<TokenCounts, 'input' | 'cached'> | undefined): number {
  if (prices === undefined || counts === undefined || counts.cached === 0) return 0;
  const { input, cachedInput } = tokenPrices(prices, priceAbove(prices, counts.input));
  const saved = (product(counts.cached, Math.max(0, input - cachedInput)) * tokenScale) / scale;
  return Number(saved < maxCost ? saved : maxCost);
}

function costOfTokens(prices: Prices, counts: TokenCounts | undefined): bigint | undefined {
  if (counts === undefined) return undefined;
  const { input, cached, written, writtenForHour, audio, pictures, output, images } = counts;
  const price = tokenPrices(prices, priceAbove(prices, input));
  return (
    (product(cached, price.cachedInput) +
      product(written - writtenForHour, price.cacheWrite) +
      product(writtenForHour, price.hourCacheWrite) +
      product(audio, price.audioInput) +
      product(pictures, price.imageInput) +
      product(input - cached - written - audio - pictures, price.input) +
      product(images, price.imageOutput) +
      product(output - images, price.output)) *
    tokenScale
  );
}

/** The prices for requests of this length. They are sorted: the last one that the request exceeds. */
function priceAbove({ above }: Prices, input: number): NonNullable<Prices['above']>[number] | undefined {
  return above?.findLast(({ tokens }) => input > tokens);
}

function costOfEach(price: number | undefined, count: number | undefined): bigint | undefined {
  if (price === undefined || count === undefined || Number.isNaN(count)) return undefined;
  return product(Math.ceil(bounded(count)), price) * scale;
}

/** Fractions of a second count to the millionth. */
function costOfSeconds(price: number | undefined, seconds: number | undefined): bigint | undefined {
  if (price === undefined || seconds === undefined || Number.isNaN(seconds)) return undefined;
  return product(Math.round(bounded(seconds) * 1_000_000), price);
}

/** Amounts beyond the bound cost as much as the bound, so that none breaks the arithmetic. */
function bounded(amount: number): number {
  return Math.min(maxAmount, Math.max(0, amount));
}

/** BigInt, as large requests at large prices exceed what a number holds exactly. */
function product(count: number, price: number): bigint {
  // Of the kinds of tokens most usages have two.
  return count === 0 ? 0n : BigInt(count) * BigInt(price);
}

/** The duration in a transcription's usage of type `duration`. */
function secondsOf(usage: Usage | null): number | undefined {
  return typeof usage?.seconds === 'number' ? usage.seconds : undefined;
}

/** A model's prices in the catalogue: nano-dollars, token prices per thousand. */
export type Prices = NonNullable<Model['prices']>;

/** The prices of tokens at a service tier, if they are listed one by one. */
export type TokenPriceList = Exclude<NonNullable<Prices['tiers']>[string], number>;

/** Token prices for one request, in nano-dollars per thousand. */
export interface TokenPrices {
  readonly input: number;
  readonly cachedInput: number;
  readonly cacheWrite: number;
  /** Input that is kept in the cache for an hour. */
  readonly hourCacheWrite: number;
  readonly audioInput: number;
  readonly imageInput: number;
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
  const cacheWrite = above?.cacheWrite ?? prices.cacheWrite ?? input;
  return {
    input,
    cachedInput: above?.cachedInput ?? prices.cachedInput ?? input,
    cacheWrite,
    // As Anthropic has it (https://platform.claude.com/docs/en/build-with-claude/prompt-caching#pricing); no price list tells it.
    hourCacheWrite: Math.max(cacheWrite, 2 * input),
    audioInput: prices.audioInput ?? input,
    imageInput: prices.imageInput ?? input,
    output,
    imageOutput: prices.imageOutput ?? output,
  };
}

/** How much of a search's results the model is shown (`web_search_options.search_context_size`), in ascending order. */
export const searchContextSizes = ['low', 'medium', 'high'] as const;

/** A size of the search context. */
export type SearchContextSize = (typeof searchContextSizes)[number];

/** Request facts that prices depend on. */
export interface FeeFacts {
  /** The requested search context; left out: `low`, the vendors' default. */
  readonly searchContext?: SearchContextSize | undefined;
  /** The number of requests it counts as: a legacy completion as many as it has prompts. Left out: one. */
  readonly requests?: number | undefined;
  /** Size and quality of the requested images, as the caller wrote them; left out: the defaults. */
  readonly imageSize?: string | undefined;
  readonly imageQuality?: string | undefined;
  /** The requested service tier, or `auto`, as `tierName` returns it; left out: the standard one. */
  readonly tier?: string | undefined;
  /** Whether it wants some of its input kept in the cache for an hour. */
  readonly hourCache?: true | undefined;
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
function requestFee(
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
function imagePrice(prices: Prices, fee: FeeFacts): number | undefined {
  return imagePricesOf(prices, fee)[0] ?? usualImagePrice(prices);
}

/** The maximum price of one image: further criteria never lower it, or requesting more would save money. */
export function highestImagePrice(prices: Prices, fee: FeeFacts): number {
  const own = imagePricesOf(prices, fee);
  return Math.max((own.length === 0 ? usualImagePrice(prices) : prices.image) ?? 0, ...own);
}

/** The price of an image that has none of its own. If no price is set for these, the dearest: what is unknown must not be cheap. */
function usualImagePrice({ image, imageKinds = {} }: Prices): number | undefined {
  const kinds = Object.values(imageKinds);
  return image ?? (kinds.length === 0 ? undefined : Math.max(...kinds));
}

/** The specific prices for images of a size and a quality, most specific first. */
function imagePricesOf({ imageKinds }: Prices, { imageSize: size, imageQuality: quality }: FeeFacts): number[] {
  if (imageKinds === undefined) return [];
  const kinds = [`${size} ${quality}`, `${size}`, `${quality}`];
  // Names may be text from the caller.
  return kinds.flatMap((kind) => (Object.hasOwn(imageKinds, kind) ? (imageKinds[kind] as number) : []));
}

const nanosPerDollar = 1_000_000_000;

/** Formats nano-dollars as dollars in plain decimals: `0.000012345`, never with an exponent. */
export function formatDollars(nanos: number): string {
  const amount = Math.abs(nanos);
  const whole = Math.floor(amount / nanosPerDollar);
  const fraction = String(amount % nanosPerDollar)
    .padStart(9, '0')
    .replace(/0+$/, '');
  return `${nanos < 0 ? '-' : ''}${whole}${fraction && `.${fraction}`}`;
}

/** Parses dollars in plain decimals, exactly; undefined if malformed, with more than nine decimals, or too large. */
export function parseDollars(text: string): number | undefined {
  const [, sign, whole, fraction = ''] = /^(-?)(\d{1,8})(?:\.(\d{1,9}))?$/.exec(text) ?? [];
  if (whole === undefined) return undefined;
  const amount = Number(whole) * nanosPerDollar + Number(fraction.padEnd(9, '0'));
  if (!Number.isSafeInteger(amount)) return undefined;
  return sign === '-' && amount > 0 ? -amount : amount;
}

/** Nano-dollars as dollars for JSON responses. */
export function toDollars(nanos: number): number {
  return nanos / nanosPerDollar;
}

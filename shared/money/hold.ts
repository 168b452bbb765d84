import type { RoutedModel } from '../catalogue/catalogue.ts';
import {
  type FeeFacts,
  highestImagePrice,
  highestRequestPrice,
  type Prices,
  type SearchContextSize,
  searchContextSizes,
  type TokenPrices,
  tokenPrices,
} from './cost.ts';
import { pricesAt } from './service-tier.ts';

/** Facts known about a request before it runs. */
export interface RequestFacts {
  /** Bytes of the request: no token is shorter. Without audio files, which count by `seconds`. */
  readonly bytes: number;
  /** Images in the request for the model to see, whether as a link, as data or as an upload. */
  readonly imageInputs?: number | undefined;
  /** The part of `bytes` that is data of these images, which does not determine their tokens, or of sounds, which count by `seconds`. */
  readonly mediaBytes?: number | undefined;
  /** Documents whose text only their vendor extracts: those given by a link or an id, and PDFs. */
  readonly documents?: number | undefined;
  /** The caller's limit of output tokens, per choice; left out: none set. */
  readonly outputTokens?: number | undefined;
  /** The caller's limit of reasoning tokens, per choice, where its vendor has one apart from that; left out: none set. */
  readonly reasoningTokens?: number | undefined;
  /** Number of requested choices (`n`, `best_of`), times the prompts of a legacy completion. */
  readonly choices?: number | undefined;
  /** Chats that stand in for the prompts of a legacy completion. */
  readonly chats?: number | undefined;
  readonly images?: number | undefined;
  /** Maximum seconds of audio input, or of generated video. */
  readonly seconds?: number | undefined;
  readonly characters?: number | undefined;
  /** Facts that prices depend on; left out: the defaults. */
  readonly fee?: FeeFacts | undefined;
}

/** The maximum cost of a request. */
export interface Hold {
  /** Nano-dollars, excluding output tokens, but with reasoning that the limit of these does not count. */
  readonly fixed: number;
  /** Nano-dollars per thousand output tokens of each choice, all choices together. */
  readonly outputPrice: number;
  /** Output tokens per choice: as requested, or the model's maximum. */
  readonly outputTokens: number;
  /** Whether the caller set that limit, or the output is not text and cannot be limited. */
  readonly isGiven: boolean;
}

/** Maximum tokens of an image in the request: vendors scale larger ones down. Claude's newest models take up to 4,784. */
const tokensPerImageInput = 5000;
/**
 * The same for models that take more, by vendor model name: GPT-4o mini 2,833 and 5,667 for each of up to 8 tiles, those that
 * see an image in its original size up to 10,000 patches, image models in high fidelity 65, 129 a tile and 6,240.
 */
const tokensPerImageInputOf: readonly (readonly [model: RegExp, tokens: number])[] = [
  [/gpt-4o-mini/, 48_169],
  [/gpt-5\.[4-9]|gpt-[6-9]/, 12_500],
  [/gpt-image/, 7500],
];
/** Input tokens assumed for a request with documents if the model's context window is unknown. */
const defaultContextWindow = 1_000_000;
/** A prompt that becomes a chat is held as one: vendors count tokens beside its text. */
const bytesOfChat = '{"messages":[{"role":"user","content":""}]}'.length;
/** OpenAI counts 10 tokens per second of audio, Google 32. */
const tokensPerSecond = 40;
/** Output tokens assumed for a model with an unknown maximum. */
const defaultMaxOutput = 16_384;
/** Qwen's longest reasoning; SiliconFlow gives it no more than 32,768 (https://docs.siliconflow.com/en/userguide/capabilities/reasoning). */
const maxReasoningTokens = 81_920;
/** Output tokens of one image at the best quality and the largest size; OpenAI's take up to 6,240 and 100 for a partial one. */
const tokensPerImage = 8192;
/**
 * OpenAI's models that make images of any size, and what one has at the best quality: up to 96 × 96 tokens for each 4 million pixels, of
 * which there are at most 8,294,400, counted with 2 million more, and 100 for each of three partial images.
 */
const anySize = {
  model: /gpt-image-(?:[2-9]|\d{2})/,
  tokens: 9216,
  pixels: 4_000_000,
  more: 2_000_000,
  most: 8_294_400,
};
const tokensOfPartials = 300;

/** Highest prices among a model's routes. Nano-dollars; token prices are per thousand. */
interface HighestPrices {
  /** Token prices for input longer than `above` tokens; for any input if undefined. */
  readonly tiers: readonly {
    readonly above: number | undefined;
    readonly input: number;
    /** The same for requests that want some of it kept in the cache for an hour. */
    readonly hourInput: number;
    readonly output: number;
  }[];
  /** Tokens per image in the request. */
  readonly imageTokens: number;
  /** Reasoning tokens that a limit of output does not count, and which of them one of their own limits; 0: none. */
  readonly reasoning: { readonly unlimited: number; readonly limited: number };
  readonly image: bigint;
  /** Routes' prices that differ by kind of image. */
  readonly imageKinds: readonly Prices[];
  readonly second: bigint;
  readonly character: bigint;
  /** Per request, by requested search context. */
  readonly request: Readonly<Record<SearchContextSize, bigint>>;
}

/** Cached by the catalogue's route lists: recomputing would cost each request more than everything else here. */
const known = new WeakMap<readonly RoutedModel[], HighestPrices>();

/**
 * An upper bound of a request's cost, over all routes that may serve it and all their prices for its length. It is never 0 if
 * one of them has a price above 0, and rises with every fact except the caller's limits of tokens.
 * @param routes the models by all their routes (`Catalogue.routes`)
 */
export function holdOf(routes: readonly RoutedModel[], facts: RequestFacts): Hold {
  const { images = 0, characters = 0, choices = 1, fee = {} } = facts;
  const { requests = 1, searchContext = 'low', tier: serviceTier, hourCache } = fee;
  const seconds = secondsOf(facts);
  const highest = serviceTier === undefined ? highestPrices(routes) : highestPricesAt(routes, serviceTier);
  const { tiers, image, imageKinds, second, character, request } = highest;
  const input = inputTokens(routes, facts);
  let [inputPrice, outputPrice] = [0, 0];
  for (const tier of tiers) {
    // Tokens are fewer than bytes, so prices of lower tiers may apply, too.
    if (tier.above !== undefined && input <= tier.above) continue;
    inputPrice = Math.max(inputPrice, hourCache ? tier.hourInput : tier.input);
    outputPrice = Math.max(outputPrice, tier.output);
  }
  const fixed =
    thousandth(BigInt(input) * BigInt(inputPrice)) +
    thousandth(BigInt(outputPrice) * BigInt(choices) * BigInt(reasoningTokens(highest, facts))) +
    BigInt(images) * (imageKinds.length === 0 ? image : highestKindPrice(imageKinds, image, fee)) +
    thousandth(BigInt(Math.ceil(seconds * 1000)) * second) +
    BigInt(characters) * character +
    BigInt(requests) * request[searchContext];
  return {
    fixed: safe(fixed === 0n && hasPrice(highest) ? 1n : fixed),
    outputPrice: safe(BigInt(outputPrice) * BigInt(choices)),
    ...maxOutput(routes, facts),
  };
}

/** The whole of a hold in nano-dollars, as admit.lua reckons it. */
export function highestCostOf({ fixed, outputPrice, outputTokens }: Hold): number {
  return Math.min(Number.MAX_SAFE_INTEGER, fixed + Math.ceil((outputPrice * outputTokens) / 1000));
}

function hasPrice({ tiers, image, imageKinds, second, character, request }: HighestPrices): boolean {
  const isPriced = (kinds: Prices['imageKinds'] = {}): boolean => Object.values(kinds).some((price) => price > 0);
  return (
    image + second + character + request.high > 0n ||
    tiers.some(({ input, output }) => input + output > 0) ||
    imageKinds.some((prices) => isPriced(prices.imageKinds))
  );
}

function highestKindPrice(priced: readonly Prices[], usual: bigint, fee: FeeFacts): bigint {
  const highest = BigInt(Math.max(...priced.map((prices) => highestImagePrice(prices, fee))));
  return highest > usual ? highest : usual;
}

/** The maximum number of input tokens. */
function inputTokens(routes: readonly RoutedModel[], facts: RequestFacts): number {
  const { bytes, chats = 0, imageInputs = 0, mediaBytes = 0, documents = 0 } = facts;
  // An image's or a sound's data reduces the text by at most its own bytes.
  const text = Math.max(0, bytes - Math.max(0, mediaBytes)) + bytesOfChat * chats;
  const input = text + highestPrices(routes).imageTokens * imageInputs + Math.ceil(tokensPerSecond * secondsOf(facts));
  if (documents === 0) return input;
  return input + Math.max(...routes.map(({ contextWindow }) => contextWindow ?? defaultContextWindow));
}

/** A length may be text from the caller that its vendor has yet to reject. */
function secondsOf({ seconds = 0 }: RequestFacts): number {
  return Number.isFinite(seconds) ? Math.max(0, seconds) : 0;
}

/** The standard prices of all routes. */
function highestPrices(routes: readonly RoutedModel[]): HighestPrices {
  const found = known.get(routes);
  if (found !== undefined) return found;
  const computed = highestOf(
    routes,
    routes.flatMap(({ prices }) => prices ?? []),
  );
  known.set(routes, computed);
  return computed;
}

/** The same at service tiers. Tiers without a price, whose names come from callers, are not cached. */
const knownAt = new WeakMap<readonly RoutedModel[], Map<string, HighestPrices>>();

/**
 * The prices of all routes at a service tier, and the standard ones: a vendor may serve a request at its standard tier.
 * @param tier also `auto`: the dearest tier that a vendor may choose
 */
function highestPricesAt(routes: readonly RoutedModel[], tier: string): HighestPrices {
  const found = knownAt.get(routes)?.get(tier);
  if (found !== undefined) return found;
  const tiered = routes.flatMap(({ prices, vendorRow }) => {
    const name = tier === 'auto' ? vendorRow.autoTier : tier;
    return (name !== undefined && pricesAt(prices, name)) || [];
  });
  if (tiered.length === 0) return highestPrices(routes);
  const computed = highestOf(routes, [...routes.flatMap(({ prices }) => prices ?? []), ...tiered]);
  knownAt.set(routes, (knownAt.get(routes) ?? new Map()).set(tier, computed));
  return computed;
}

function highestOf(routes: readonly RoutedModel[], priced: readonly Prices[]): HighestPrices {
  const largest = (priceOf: (prices: Prices) => number | undefined): bigint =>
    BigInt(Math.max(0, ...priced.map((prices) => priceOf(prices) ?? 0)));
  return {
    tiers: priced.flatMap((prices) => [
      tierOf(undefined, tokenPrices(prices)),
      ...(prices.above ?? []).map((longer) => tierOf(longer.tokens, tokenPrices(prices, longer))),
    ]),
    imageTokens: Math.max(tokensPerImageInput, ...routes.map(imageTokensOf)),
    reasoning: { unlimited: maxReasoning(routes, false), limited: maxReasoning(routes, true) },
    image: largest((prices) => prices.image),
    imageKinds: priced.filter((prices) => prices.imageKinds !== undefined),
    second: largest(({ second }) => second),
    character: largest(({ character }) => character),
    request: Object.fromEntries(
      searchContextSizes.map((size) => [size, largest(({ request }) => highestRequestPrice(request, size))]),
    ) as HighestPrices['request'],
  };
}

function imageTokensOf({ route }: RoutedModel): number {
  return tokensPerImageInputOf.find(([model]) => model.test(route.model))?.[1] ?? tokensPerImageInput;
}

function tierOf(above: number | undefined, prices: TokenPrices): HighestPrices['tiers'][number] {
  const { cachedInput, cacheWrite, hourCacheWrite, audioInput, imageInput, output, imageOutput } = prices;
  const input = Math.max(prices.input, cachedInput, cacheWrite, audioInput, imageInput);
  return {
    above,
    input,
    hourInput: Math.max(input, hourCacheWrite),
    output: Math.max(output, imageOutput),
  };
}

/** Reasoning of one choice that the limit of output does not count. Nothing is generated where that is 0. */
function reasoningTokens({ reasoning }: HighestPrices, { outputTokens, reasoningTokens: limit }: RequestFacts): number {
  const { unlimited, limited } = reasoning;
  if (unlimited + limited === 0 || outputTokens === 0) return 0;
  return Math.max(unlimited, limit ?? limited);
}

/** @param isLimited of models whose reasoning has a limit of its own, or of those that pass over it */
function maxReasoning(routes: readonly RoutedModel[], isLimited: boolean): number {
  const beside = routes.filter(({ capability, reasoning, route, vendorRow }) => {
    const limited = capability === 'chat' && reasoning !== false ? vendorRow.chat?.reasoningBudget : undefined;
    return limited?.test(route.model) === isLimited;
  });
  return Math.min(maxReasoningTokens, Math.max(0, ...beside.map(maxOutputOf)));
}

function maxOutputOf({ maxOutputTokens, contextWindow }: RoutedModel): number {
  return maxOutputTokens ?? Math.min(defaultMaxOutput, contextWindow ?? defaultMaxOutput);
}

/** The maximum output length of one choice. */
function maxOutput(
  routes: readonly RoutedModel[],
  { outputTokens, images = 0, fee }: RequestFacts,
): Pick<Hold, 'outputTokens' | 'isGiven'> {
  if (outputTokens !== undefined) return { outputTokens, isGiven: true };
  const capability = routes[0]?.capability;
  if (capability === 'embedding' || capability === 'video') return { outputTokens: 0, isGiven: true };
  if (capability === 'image') return { outputTokens: images * tokensOfImage(routes, fee), isGiven: true };
  return { outputTokens: Math.max(0, ...routes.map(maxOutputOf)), isGiven: capability !== 'chat' };
}

/** The maximum output tokens of one image of the requested size. */
function tokensOfImage(routes: readonly RoutedModel[], { imageSize = '' }: FeeFacts = {}): number {
  const [, width, height] = /^(\d{1,5})x(\d{1,5})$/.exec(imageSize) ?? [];
  if (width === undefined || !routes.some(({ route }) => anySize.model.test(route.model))) return tokensPerImage;
  const pixels = Math.min(anySize.most, Number(width) * Number(height)) + anySize.more;
  return Math.max(tokensPerImage, Math.ceil((anySize.tokens * pixels) / anySize.pixels) + tokensOfPartials);
}

/** A thousandth, rounded up. */
function thousandth(amount: bigint): bigint {
  return (amount + 999n) / 1000n;
}

function safe(amount: bigint): number {
  return amount > Number.MAX_SAFE_INTEGER ? Number.MAX_SAFE_INTEGER : Number(amount);
}

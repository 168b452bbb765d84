import type { RoutedModel } from '../catalogue/catalogue.ts';
import { type Prices, type TokenPrices, tokenPrices } from './prices.ts';
import {
  type FeeFacts,
  highestImagePrice,
  highestRequestPrice,
  type SearchContextSize,
  searchContextSizes,
} from './request-fee.ts';

/** What is known of a request before it is run. */
export interface RequestFacts {
  /** Bytes of the request: no token is shorter. Files of audio are not among them: they count by `seconds`. */
  readonly bytes: number;
  /** Images that the request shows its model, whether by a link, as data or as an upload. */
  readonly imageInputs?: number | undefined;
  /** Of `bytes` those that are data of these images: they say nothing of an image's tokens. */
  readonly imageBytes?: number | undefined;
  /** Documents whose text only their vendor finds out: those given by a link or an id, and PDFs. */
  readonly documents?: number | undefined;
  /** The caller's limit of output tokens, for one choice; left out: it has set none. */
  readonly outputTokens?: number | undefined;
  /** Answers that are asked for (`n`, `best_of`), times the prompts of a legacy completion. */
  readonly choices?: number | undefined;
  readonly images?: number | undefined;
  /** Seconds of audio to be heard, or of video to be made, at most. */
  readonly seconds?: number | undefined;
  readonly characters?: number | undefined;
  /** What prices of requests and images differ by; left out: it asks for what is usual. */
  readonly fee?: FeeFacts | undefined;
}

/** The most that a request can cost. */
export interface Hold {
  /** Nano-dollars without the tokens of the output. */
  readonly fixed: number;
  /** Nano-dollars for a thousand tokens of each choice's output, the choices together. */
  readonly outputPrice: number;
  /** Tokens of one choice's output: as asked for, or the model's maximum. */
  readonly outputTokens: number;
  /** Whether the caller has set that limit, or the output is no text that could be limited. */
  readonly isGiven: boolean;
}

/** The most tokens that an image of the request takes: vendors scale larger ones down. Claude's newest take up to 4,784. */
const tokensPerImageInput = 5000;
/**
 * The same of models that take more, by what their vendors call them: GPT-4o mini 2,833 and 5,667 for each of up to 8 tiles,
 * those that see an image in its original size up to 10,000 patches, image models in high fidelity 65, 129 a tile and 6,240.
 */
const tokensPerImageInputOf: readonly (readonly [model: RegExp, tokens: number])[] = [
  [/gpt-4o-mini/, 48_169],
  [/gpt-5\.[4-9]|gpt-[6-9]/, 12_500],
  [/gpt-image/, 7500],
];
/** What a request with documents is counted as where the model does not say how long its input can be. */
const usualContextWindow = 1_000_000;
/** OpenAI hears 10 tokens in a second, Google 32. */
const tokensPerSecond = 40;
/** Output of a model that does not say how long its answers can be. */
const usualMaxOutput = 16_384;
/** Output of one image of the best quality and the largest size; OpenAI's take up to 6,240 and 100 for a partial one. */
const tokensPerImage = 8192;

/** The dearest that the routes of a model are. Nano-dollars, those of tokens for a thousand. */
interface Dearest {
  /** Prices of tokens once the input is longer than so many; of any input where that is undefined. */
  readonly tiers: readonly {
    readonly above: number | undefined;
    readonly input: number;
    readonly output: number;
  }[];
  /** Tokens of an image of the request. */
  readonly imageTokens: number;
  readonly image: bigint;
  /** Those that have other prices for some images. */
  readonly imageKinds: readonly Prices[];
  readonly second: bigint;
  readonly character: bigint;
  /** For a request, by what search context it asks for. */
  readonly request: Readonly<Record<SearchContextSize, bigint>>;
}

/** By the lists of routes that the catalogue keeps: reckoning it anew would cost each request more than the rest here. */
const known = new WeakMap<readonly RoutedModel[], Dearest>();

/**
 * An upper bound of what a request can cost, over all routes that may serve it and all their prices for its length. It is
 * never 0 where one of them has a price above 0, and rises with every fact but the caller's limit of output tokens.
 * @param routes the models by all their routes (`Catalogue.routes`)
 */
export function holdOf(routes: readonly RoutedModel[], facts: RequestFacts): Hold {
  const { images = 0, characters = 0, choices = 1, fee = {} } = facts;
  const { requests = 1, searchContext = 'low' } = fee;
  const seconds = secondsOf(facts);
  const { tiers, image, imageKinds, second, character, request } = dearest(routes);
  const input = inputTokens(routes, facts);
  let [inputPrice, outputPrice] = [0, 0];
  for (const tier of tiers) {
    // Tokens are fewer than bytes: the prices below may be the ones that count, too.
    if (tier.above !== undefined && input <= tier.above) continue;
    inputPrice = Math.max(inputPrice, tier.input);
    outputPrice = Math.max(outputPrice, tier.output);
  }
  const fixed =
    thousandth(BigInt(input) * BigInt(inputPrice)) +
    BigInt(images) * (imageKinds.length === 0 ? image : dearestImage(imageKinds, image, fee)) +
    thousandth(BigInt(Math.ceil(seconds * 1000)) * second) +
    BigInt(characters) * character +
    BigInt(requests) * request[searchContext];
  return {
    fixed: safe(fixed === 0n && hasPrice(dearest(routes)) ? 1n : fixed),
    outputPrice: safe(BigInt(outputPrice) * BigInt(choices)),
    ...maxOutput(routes, facts),
  };
}

function hasPrice({ tiers, image, imageKinds, second, character, request }: Dearest): boolean {
  const isPriced = (kinds: Prices['imageKinds'] = {}): boolean => Object.values(kinds).some((price) => price > 0);
  return (
    image + second + character + request.high > 0n ||
    tiers.some(({ input, output }) => input + output > 0) ||
    imageKinds.some((prices) => isPriced(prices.imageKinds))
  );
}

function dearestImage(priced: readonly Prices[], usual: bigint, fee: FeeFacts): bigint {
  const dearest = BigInt(Math.max(...priced.map((prices) => highestImagePrice(prices, fee))));
  return dearest > usual ? dearest : usual;
}

/** The most tokens that the input can have. */
function inputTokens(routes: readonly RoutedModel[], facts: RequestFacts): number {
  const { bytes, imageInputs = 0, imageBytes = 0, documents = 0 } = facts;
  // What an image saves is at most its own bytes, whoever counted them.
  const text = Math.max(0, bytes - Math.max(0, imageBytes));
  const input = text + dearest(routes).imageTokens * imageInputs + Math.ceil(tokensPerSecond * secondsOf(facts));
  if (documents === 0) return input;
  return input + Math.max(...routes.map(({ contextWindow }) => contextWindow ?? usualContextWindow));
}

/** A length may be the caller's text, which its vendor is yet to refuse. */
function secondsOf({ seconds = 0 }: RequestFacts): number {
  return Number.isFinite(seconds) ? Math.max(0, seconds) : 0;
}

function dearest(routes: readonly RoutedModel[]): Dearest {
  const found = known.get(routes);
  if (found !== undefined) return found;
  const priced = routes.flatMap(({ prices }) => prices ?? []);
  const largest = (priceOf: (prices: Prices) => number | undefined): bigint =>
    BigInt(Math.max(0, ...priced.map((prices) => priceOf(prices) ?? 0)));
  const reckoned: Dearest = {
    tiers: priced.flatMap((prices) => [
      tierOf(undefined, tokenPrices(prices)),
      ...(prices.above ?? []).map((longer) => tierOf(longer.tokens, tokenPrices(prices, longer))),
    ]),
    imageTokens: Math.max(tokensPerImageInput, ...routes.map(imageTokensOf)),
    image: largest((prices) => prices.image),
    imageKinds: priced.filter((prices) => prices.imageKinds !== undefined),
    second: largest(({ second }) => second),
    character: largest(({ character }) => character),
    request: Object.fromEntries(
      searchContextSizes.map((size) => [size, largest(({ request }) => highestRequestPrice(request, size))]),
    ) as Dearest['request'],
  };
  known.set(routes, reckoned);
  return reckoned;
}

function imageTokensOf({ route }: RoutedModel): number {
  return tokensPerImageInputOf.find(([model]) => model.test(route.model))?.[1] ?? tokensPerImageInput;
}

function tierOf(above: number | undefined, prices: TokenPrices): Dearest['tiers'][number] {
  const { input, cachedInput, cacheWrite, audioInput, output, imageOutput } = prices;
  return {
    above,
    input: Math.max(input, cachedInput, cacheWrite, audioInput),
    output: Math.max(output, imageOutput),
  };
}

/** What a hold comes to with so many tokens of output for each choice, in nano-dollars. */
export function amountOf({ fixed, outputPrice }: Pick<Hold, 'fixed' | 'outputPrice'>, outputTokens: number): number {
  return safe(BigInt(fixed) + thousandth(BigInt(outputPrice) * BigInt(outputTokens)));
}

/** How long the output of one choice can be. */
function maxOutput(
  routes: readonly RoutedModel[],
  { outputTokens, images = 0 }: RequestFacts,
): Pick<Hold, 'outputTokens' | 'isGiven'> {
  if (outputTokens !== undefined) return { outputTokens, isGiven: true };
  const capability = routes[0]?.capability;
  if (capability === 'embedding' || capability === 'video') return { outputTokens: 0, isGiven: true };
  if (capability === 'image') return { outputTokens: images * tokensPerImage, isGiven: true };
  const longest = Math.max(
    0,
    ...routes.map((row) => row.maxOutputTokens ?? Math.min(usualMaxOutput, row.contextWindow ?? usualMaxOutput)),
  );
  return { outputTokens: longest, isGiven: capability !== 'chat' };
}

/** A thousandth, rounded up. */
function thousandth(amount: bigint): bigint {
  return (amount + 999n) / 1000n;
}

function safe(amount: bigint): number {
  return amount > Number.MAX_SAFE_INTEGER ? Number.MAX_SAFE_INTEGER : Number(amount);
}

import { maxAmount } from './impossible-amount.ts';
import { type Prices, tokenPrices } from './prices.ts';
import { type FeeFacts, imagePrice, requestFee } from './request-fee.ts';
import { readTokenCounts, type TokenCounts } from './token-counts.ts';

/** What a job has used that is not counted in tokens; what is not known is left out. */
export interface Quantities {
  /** Images in the answer. */
  readonly images?: number | undefined;
  /** Seconds of audio that were heard, or of video that were made. */
  readonly seconds?: number | undefined;
  /** Characters that were spoken. */
  readonly characters?: number | undefined;
}

/** What everything is added up in: a millionth of a nano-dollar, so that thousandths and parts of seconds stay whole. */
const scale = 1_000_000n;
/** Prices of tokens are for a thousand. */
const tokenScale = scale / 1000n;
const most = BigInt(Number.MAX_SAFE_INTEGER);

/**
 * What a job costs, in whole nano-dollars, rounded up once at the end.
 * @param prices of the route that has served it
 * @param usage as its vendor told it, or as it was estimated; see `readTokenCounts`
 * @param fee what was asked for, by which prices of requests and images differ
 * @returns undefined where the cost is not known: the model has no prices, or nothing is known of what they are for. That
 *   is recorded as null, and nothing is charged for it.
 */
export function costOf(
  prices: Prices | undefined,
  usage: Readonly<Record<string, unknown>> | null,
  quantities: Quantities = {},
  fee: FeeFacts = {},
): number | undefined {
  if (prices === undefined) return undefined;
  const counts = usage === null ? undefined : readTokenCounts(usage, quantities.images !== undefined);
  const parts = [
    hasTokenPrice(prices) ? counts && costOfTokens(prices, counts) : undefined,
    costOfEach(imagePrice(prices, fee), quantities.images),
    costOfEach(prices.character, quantities.characters),
    costOfSeconds(prices.second, quantities.seconds ?? secondsOf(usage)),
    prices.request === undefined ? undefined : requestFee(prices.request, fee, usage?.search_context_size) * scale,
  ].filter((part) => part !== undefined);
  if (parts.length === 0) return undefined;
  const sum = parts.reduce((one, other) => one + other, 0n);
  const cost = (sum + scale - 1n) / scale;
  return Number(cost < most ? cost : most);
}

function hasTokenPrice({ input, output, audioInput, imageOutput }: Prices): boolean {
  return (input ?? output ?? audioInput ?? imageOutput) !== undefined;
}

function costOfTokens(prices: Prices, { input, cached, written, audio, output, images }: TokenCounts): bigint {
  // By rising length: the last one that the request is beyond.
  const above = prices.above?.findLast(({ tokens }) => input > tokens);
  const price = tokenPrices(prices, above);
  return (
    (product(cached, price.cachedInput) +
      product(written, price.cacheWrite) +
      product(audio, price.audioInput) +
      product(input - cached - written - audio, price.input) +
      product(images, price.imageOutput) +
      product(output - images, price.output)) *
    tokenScale
  );
}

function costOfEach(price: number | undefined, count: number | undefined): bigint | undefined {
  if (price === undefined || count === undefined || Number.isNaN(count)) return undefined;
  return product(Math.ceil(bounded(count)), price) * scale;
}

/** Parts of a second count to the millionth. */
function costOfSeconds(price: number | undefined, seconds: number | undefined): bigint | undefined {
  if (price === undefined || seconds === undefined || Number.isNaN(seconds)) return undefined;
  return product(Math.round(bounded(seconds) * 1_000_000), price);
}

/** What is beyond all bounds costs as much as the bound, so that no amount breaks the arithmetic. */
function bounded(amount: number): number {
  return Math.min(maxAmount, Math.max(0, amount));
}

/** Large requests at large prices pass what a number holds exactly. */
function product(count: number, price: number): bigint {
  return BigInt(count) * BigInt(price);
}

/** The length that a transcription's usage of type `duration` tells. */
function secondsOf(usage: Readonly<Record<string, unknown>> | null): number | undefined {
  return typeof usage?.seconds === 'number' ? usage.seconds : undefined;
}

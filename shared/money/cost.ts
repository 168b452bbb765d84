import { maxAmount } from './impossible-amount.ts';
import { type Prices, tokenPrices } from './prices.ts';
import { type FeeFacts, imagePrice, requestFee } from './request-fee.ts';
import { readTokenCounts, type TokenCounts } from './token-counts.ts';

/** Usage not counted in tokens; unknown amounts are left out. */
export interface Quantities {
  /** Images in the answer. */
  readonly images?: number | undefined;
  /** Seconds of audio input, or of generated video. */
  readonly seconds?: number | undefined;
  /** Characters synthesized to speech. */
  readonly characters?: number | undefined;
}

/** Unit of the sums: a millionth of a nano-dollar, so that thousandths and fractions of seconds stay integers. */
const scale = 1_000_000n;
/** Token prices are per thousand. */
const tokenScale = scale / 1000n;
const maxCost = BigInt(Number.MAX_SAFE_INTEGER);

/**
 * The cost of a job in whole nano-dollars, rounded up once at the end.
 * @param prices of the route that served it
 * @param usage as its vendor reported it, or as estimated; see `readTokenCounts`
 * @param fee request facts that determine prices of requests and images
 * @returns undefined if the cost is unknown: the model has no prices, or none of the priced amounts is known. It is recorded as
 * null, and nothing is charged.
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
  return Number(cost < maxCost ? cost : maxCost);
}

function hasTokenPrice({ input, output, audioInput, imageOutput }: Prices): boolean {
  return (input ?? output ?? audioInput ?? imageOutput) !== undefined;
}

function costOfTokens(prices: Prices, { input, cached, written, audio, output, images }: TokenCounts): bigint {
  // Sorted by length: the last one that the request exceeds.
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
  return BigInt(count) * BigInt(price);
}

/** The duration in a transcription's usage of type `duration`. */
function secondsOf(usage: Readonly<Record<string, unknown>> | null): number | undefined {
  return typeof usage?.seconds === 'number' ? usage.seconds : undefined;
}

import { askedSearchContext } from '../../shared/money/request-fee.ts';
import type { Extent } from './parsed-request.ts';

/**
 * The extent of a request for text.
 * @param outputTokens the caller's limit for each answer
 * @param choices number of answers
 */
export function extentOf(outputTokens: number | null | undefined, choices?: number | null): Extent {
  return { outputTokens: outputTokens ?? undefined, choices: choices ?? undefined };
}

/**
 * Facts of a text request for prices per request; empty for most.
 * @param requests number of requests that it counts as
 */
export function feeExtent(options: unknown, requests = 1): Pick<Extent, 'fee'> {
  const searchContext = options === undefined ? undefined : askedSearchContext(options);
  if (searchContext === undefined && requests === 1) return {};
  return { fee: { ...(searchContext && { searchContext }), ...(requests !== 1 && { requests }) } };
}

/** Facts of an image request for prices per image. Values that no price can name are omitted. */
export function imageFeeExtent({ size, quality }: { size?: unknown; quality?: unknown }): Pick<Extent, 'fee'> {
  const [imageSize, imageQuality] = [nameOf(size), nameOf(quality)];
  if (imageSize === undefined && imageQuality === undefined) return {};
  return { fee: { ...(imageSize && { imageSize }), ...(imageQuality && { imageQuality }) } };
}

function nameOf(value: unknown): string | undefined {
  return typeof value === 'string' && /^[\w-]{1,31}$/.test(value) ? value : undefined;
}

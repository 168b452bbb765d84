import { askedSearchContext, type FeeFacts } from '../../shared/money/request-fee.ts';
import type { Extent } from './prepared-request.ts';

/**
 * The extent of a request for text.
 * @param outputTokens the caller's limit for each answer
 * @param choices how many answers are made
 */
export function extentOf(outputTokens: number | null | undefined, choices?: number | null): Extent {
  return { outputTokens: outputTokens ?? undefined, choices: choices ?? undefined };
}

/**
 * What of a request a price of the request counts by; nothing for most.
 * @param requests as how many it counts
 */
export function feeExtent(options: unknown, requests = 1): FeeFacts {
  const searchContext = options === undefined ? undefined : askedSearchContext(options);
  return { ...(searchContext && { searchContext }), ...(requests !== 1 && { requests }) };
}

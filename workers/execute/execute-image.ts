import { hasTokenPrice, type Prices } from '../../shared/money/cost.ts';
import { hasOutput } from '../../shared/money/token-counts.ts';
import { requestText } from '../vendors/request-body.ts';
import type { AnswerBody } from '../vendors/vendor.ts';
import { type Execute, methodOf } from './execution.ts';

/**
 * Makes images by one call: a creation is never repeated. The row determines which fields the vendor takes. A usage that does not count
 * the images is as good as none where they are paid by tokens: they would cost next to nothing.
 */
export const executeImage: Execute<AnswerBody> = async ({ vendor, row, call, sink }) => {
  const takes = row.image?.responseFormat ?? false;
  // Put before the first field, because the request may hold megabytes of images.
  const request = `{"takes_response_format":${takes},${requestText(call.request).slice(1)}`;
  const answer = await methodOf(vendor, 'image')({ ...call, request }, sink);
  const { usage } = answer;
  return usage === null || hasOutput(usage) || !arePaidByTokens(row.prices) ? answer : { ...answer, usage: null };
};

function arePaidByTokens(prices: Prices | undefined): boolean {
  return prices !== undefined && hasTokenPrice(prices) && prices.image === undefined && prices.imageKinds === undefined;
}

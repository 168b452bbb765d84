import type { RequestFacts } from '../../shared/money/hold.ts';
import type { ParsedRequest } from '../pipeline/parsed-request.ts';

/** Facts of a request as it is queued, including earlier turns. Its media were counted when it was parsed: its text is not read here. */
export function requestFacts({
  request,
  extent,
  wantsHourCache,
}: Pick<ParsedRequest, 'request' | 'extent' | 'wantsHourCache'>): RequestFacts {
  // Not its characters: a Chinese one may be three tokens.
  const bytes = typeof request === 'string' ? Buffer.byteLength(request) : request.length;
  return wantsHourCache ? { ...extent, fee: { ...extent?.fee, hourCache: true }, bytes } : { ...extent, bytes };
}

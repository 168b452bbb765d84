import type { RequestFacts } from '../../shared/money/hold.ts';
import type { ParsedRequest } from '../pipeline/parsed-request.ts';

/** Facts of a request as it is queued, including earlier turns. Its media were counted when it was parsed: its text is not read here. */
export function requestFacts({ request, extent }: Pick<ParsedRequest, 'request' | 'extent'>): RequestFacts {
  // Not its characters: a Chinese one may be three tokens.
  return { ...extent, bytes: typeof request === 'string' ? Buffer.byteLength(request) : request.length };
}

import type { RequestFacts } from '../../shared/money/hold.ts';
import type { Parsed } from '../pipeline/endpoint.ts';

/**
 * What is known of a request as it is queued, with the turns that were put before it. What it shows was counted when it was
 * taken apart: its text is not read here.
 */
export function requestFacts({ request, extent }: Pick<Parsed, 'request' | 'extent'>): RequestFacts {
  // Not its characters: a Chinese one may be three tokens.
  return { ...extent, bytes: Buffer.byteLength(request) };
}

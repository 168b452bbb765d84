import type { Capability } from '../../shared/capabilities/capability.ts';
import type { RequestFacts } from '../../shared/money/hold.ts';
import type { Prepared } from '../endpoints/endpoint.ts';

/** What an image follows in a request, whatever endpoint it came by. (In a text the quotes are escaped.) */
const imageField = '"image_url":';

/**
 * What is known of a request as it is queued, with the turns that were put before it. Images count by themselves: how long a
 * link is says nothing of them, and uploaded ones are not in the request at all.
 */
export function requestFacts(
  { request, extent, files = [] }: Pick<Prepared, 'request' | 'extent' | 'files'>,
  capability: Capability,
): RequestFacts {
  // Not its characters: a Chinese one may be three tokens.
  const bytes = typeof request === 'string' ? Buffer.from(request) : Buffer.from(request.buffer, request.byteOffset);
  let imageLinks = capability === 'image' ? files.length : 0;
  for (let at = bytes.indexOf(imageField); at >= 0; at = bytes.indexOf(imageField, at + imageField.length))
    imageLinks++;
  return { ...extent, bytes: bytes.length, imageLinks };
}

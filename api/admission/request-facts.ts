import type { Capability } from '../../shared/capabilities/capability.ts';
import type { RequestFacts } from '../../shared/money/hold.ts';
import type { Prepared } from '../endpoints/endpoint.ts';

/** What an image follows in a request, whatever endpoint it came by. (In a text the quotes are escaped.) */
const imageField = '"image_url":';

/** How far behind that the image's own data may begin: `{"detail":"high","url":"data:…`. */
const dataWithin = 64;

/**
 * What is known of a request as it is queued, with the turns that were put before it. Images count by themselves: how long a
 * link is, or the base64 of one, says nothing of its tokens, and uploaded ones are not in the request at all.
 */
export function requestFacts(
  { request, extent, files = [] }: Pick<Prepared, 'request' | 'extent' | 'files'>,
  capability: Capability,
): RequestFacts {
  const text = typeof request === 'string' ? request : Buffer.from(request.buffer, request.byteOffset, request.length);
  // Not its characters: a Chinese one may be three tokens.
  let bytes = Buffer.byteLength(text);
  let imageLinks = capability === 'image' ? files.length : 0;
  for (let at = text.indexOf(imageField); at >= 0; at = text.indexOf(imageField, at + imageField.length)) {
    imageLinks++;
    const head =
      typeof text === 'string' ? text.slice(at, at + dataWithin) : text.toString('latin1', at, at + dataWithin);
    const data = head.indexOf('"data:');
    if (data >= 0) bytes -= text.indexOf('"', at + data + 1) - (at + data);
  }
  return { ...extent, bytes, imageLinks };
}

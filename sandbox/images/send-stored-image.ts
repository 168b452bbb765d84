import type { Exchange } from '../exchange.ts';
import { WireError } from '../wire-error.ts';

/** `GET /generated-images/{name}` */
export function sendStoredImage({ response, id, state }: Exchange): void {
  const file = state.images.get(id);
  if (file === undefined) throw new WireError(404, 'This image is no longer kept.', { code: 'not_found' });
  response.writeHead(200, {
    'Content-Type': `image/${id.slice(id.lastIndexOf('.') + 1)}`,
    'Content-Length': file.length,
  });
  response.end(file);
}

import type { Exchange } from '../exchange.ts';
import { nextRequestId } from '../response.ts';
import { WireError } from '../wire-error.ts';

const MAXIMUM_IMAGES = 64;

/** The images that were answered as addresses: the last 64. */
export class ImageStore {
  readonly #images = new Map<string, Buffer>();

  /** Keeps a PNG and answers the last part of its address. */
  add(png: Buffer): string {
    const name = `${nextRequestId()}.png`;
    this.#images.set(name, png);
    for (const oldest of this.#images.keys()) {
      if (this.#images.size <= MAXIMUM_IMAGES) break;
      this.#images.delete(oldest);
    }
    return name;
  }

  get(name: string): Buffer | undefined {
    return this.#images.get(name);
  }
}

/** `GET /generated-images/{name}` */
export function sendStoredImage({ response, id, state }: Exchange): void {
  const png = state.images.get(id);
  if (png === undefined) throw new WireError(404, 'This image is no longer kept.', { code: 'not_found' });
  response.writeHead(200, { 'Content-Type': 'image/png', 'Content-Length': png.length });
  response.end(png);
}

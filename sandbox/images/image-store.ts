import type { Exchange } from '../exchange.ts';
import { nextRequestId } from '../response.ts';
import { WireError } from '../wire-error.ts';
import type { ImageFormat } from './draw-image.ts';

const MAXIMUM_IMAGES = 64;

/** The images that were answered as addresses: the last 64. */
export class ImageStore {
  readonly #images = new Map<string, Buffer>();

  /** Keeps a file and returns the last part of its address. */
  add(file: Buffer, format: ImageFormat): string {
    const name = `${nextRequestId()}.${format}`;
    this.#images.set(name, file);
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
  const file = state.images.get(id);
  if (file === undefined) throw new WireError(404, 'This image is no longer kept.', { code: 'not_found' });
  response.writeHead(200, {
    'Content-Type': `image/${id.slice(id.lastIndexOf('.') + 1)}`,
    'Content-Length': file.length,
  });
  response.end(file);
}

import { nextRequestId } from '../response.ts';
import type { ImageFormat } from './draw-image.ts';

const MAXIMUM_IMAGES = 64;

/** The images returned as URLs: the last 64. */
export class ImageStore {
  readonly #images = new Map<string, Buffer>();

  /** Stores a file and returns the last part of its URL. */
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

import { statfs } from 'node:fs/promises';
import { ApiError } from '../../shared/errors.ts';

/** Maximum age of the figure. */
const ageMs = 1000;

/** Keeps uploads from filling the disk, which the database and the queue also need. */
export class DiskFloor {
  readonly #folder: string;
  readonly #floor: number;
  /** In ms of `performance.now()`. */
  #readAt = Number.NEGATIVE_INFINITY;
  #free = Number.POSITIVE_INFINITY;

  /** @param floor free bytes below which uploads are refused */
  constructor(folder: string, floor: number) {
    this.#folder = folder;
    this.#floor = floor;
  }

  /** Free bytes, at most a second old. A stale figure is refreshed in the background. */
  get free(): number {
    const now = performance.now();
    if (now - this.#readAt > ageMs) {
      this.#readAt = now;
      this.refresh().catch(() => undefined);
    }
    return this.#free;
  }

  async refresh(): Promise<void> {
    const { bavail, bsize } = await statfs(this.#folder);
    this.#free = bavail * bsize;
  }

  /** @throws ApiError 503 below the floor. */
  assertRoom(): void {
    if (this.free >= this.#floor) return;
    throw new ApiError(
      'service_unavailable',
      'The server is short of disk space and accepts no large requests at the moment. Try again later.',
      {
        reason: 'disk',
        retryAfterMs: 10_000,
      },
    );
  }
}

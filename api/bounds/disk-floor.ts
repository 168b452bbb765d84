import { statfs } from 'node:fs/promises';
import { ApiError } from '../../shared/errors.ts';

/** How old the figure may be. */
const ageMs = 1000;

/** Keeps uploads from filling the disk that the database and the queue need, too. */
export class DiskFloor {
  readonly #folder: string;
  readonly #floor: number;
  #readAt = 0;
  #free = Number.POSITIVE_INFINITY;

  /** @param floor free bytes below which nothing more is taken */
  constructor(folder: string, floor: number) {
    this.#folder = folder;
    this.#floor = floor;
  }

  /** Free bytes, as of a second ago. Reads the figure anew behind the caller's back. */
  get free(): number {
    const now = Date.now();
    if (now - this.#readAt > ageMs) {
      this.#readAt = now;
      this.refresh().catch(() => undefined);
    }
    return this.#free;
  }

  /** Reads the figure. */
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
        retryAfterMs: 10_000,
      },
    );
  }
}

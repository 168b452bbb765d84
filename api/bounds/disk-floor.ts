import { statfs } from 'node:fs/promises';
import { ApiError } from '../../shared/errors.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';

/** Maximum age of the figure, and the longest wait for a newer one. */
const ageMs = 1000;

/** Keeps uploads from filling the disk, which the database and the queue also need. */
export class DiskFloor {
  readonly #folder: string;
  readonly #floor: number;
  /** In ms of `performance.now()`. */
  #readAt = Number.NEGATIVE_INFINITY;
  #free = Number.POSITIVE_INFINITY;
  #reading: Promise<void> | undefined;

  /** @param floor free bytes below which uploads are refused */
  constructor(folder: string, floor: number) {
    this.#folder = folder;
    this.#floor = floor;
  }

  /** Free bytes, at most a second old; older only if the folder does not answer. */
  async free(): Promise<number> {
    await withTimeout(this.refresh(), ageMs).catch(() => undefined);
    return this.#free;
  }

  /** Reads a figure again that is over a second old. */
  refresh(): Promise<void> {
    if (performance.now() - this.#readAt <= ageMs) return Promise.resolve();
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #read(): Promise<void> {
    const { bavail, bsize } = await statfs(this.#folder);
    this.#free = bavail * bsize;
    this.#readAt = performance.now();
  }

  /** For a body that begins: the last one may have come hours before. @throws ApiError 503 below the floor. */
  async assertRoomToBegin(): Promise<void> {
    await this.free();
    this.assertRoom();
  }

  /** For a body that is on its way, by the figure as last read. @throws ApiError 503 below the floor. */
  assertRoom(): void {
    this.refresh().catch(() => undefined);
    if (this.#free >= this.#floor) return;
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

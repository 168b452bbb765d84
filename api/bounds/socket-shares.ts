import { ApiError } from '../../shared/errors.ts';
import { Tally } from './tally.ts';

/** Concurrent connections that follow one job. */
const maxJobWatchers = 32;
/** Limit of an account, as a multiple of the limit of one API key. */
export const keysPerAccount = 4;

/** The owner of a socket, and the job that it follows. */
export interface SocketOwner {
  readonly account: string;
  /** Undefined in the console, which has a session instead. */
  readonly apiKeyId?: string | undefined;
  readonly job?: string;
}

/** Counts WebSockets, and connections that follow a job: they are free once open, so only their number bounds them. */
export class SocketShares {
  readonly #maxPerKey: number;
  readonly #open = new Tally();
  #size = 0;

  constructor(maxPerKey: number) {
    this.#maxPerKey = maxPerKey;
  }

  /** Number of counted connections. */
  get size(): number {
    return this.#size;
  }

  /**
   * Counts a connection.
   * @returns a function that releases it
   * @throws ApiError 429 when its key, account or job has too many.
   */
  take({ account, apiKeyId, job }: SocketOwner): () => void {
    const perKey = this.#maxPerKey;
    const bounds: [string, number][] = [[`account ${account}`, perKey * keysPerAccount]];
    if (apiKeyId !== undefined) bounds.push([`key ${apiKeyId}`, perKey]);
    if (job !== undefined) bounds.push([`job ${job}`, maxJobWatchers]);
    for (const [name, most] of bounds) {
      if (this.#open.of(name) < most) continue;
      const [whose] = name.split(' ');
      throw new ApiError(
        'rate_limit_exceeded',
        `Too many connections are open: this ${whose === 'key' ? 'API key' : whose} may have ${most} at a time.`,
        { reason: 'sockets', retryAfterMs: 5000 },
      );
    }
    for (const [name] of bounds) this.#open.add(name, 1);
    this.#size++;
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      this.#size--;
      for (const [name] of bounds) this.#open.add(name, -1);
    };
  }
}

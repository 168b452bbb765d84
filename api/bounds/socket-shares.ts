import { ApiError } from '../../shared/errors.ts';
import { Tally } from './tally.ts';

/** Connections that may follow one job at a time. */
const maxJobWatchers = 32;
/** How many times as many as one of its API keys an account may have. */
const keysPerAccount = 4;

/** Who opens a socket, and the job that it follows. */
export interface SocketOwner {
  readonly account: string;
  /** Undefined on the console, where a session watches. */
  readonly apiKeyId?: string | undefined;
  readonly job?: string;
}

/** WebSockets, and connections that follow a job: they cost nothing once open, so they are counted. */
export class SocketShares {
  readonly #maxPerKey: number;
  readonly #open = new Tally();

  constructor(maxPerKey: number) {
    this.#maxPerKey = maxPerKey;
  }

  /**
   * Counts one.
   * @returns how to uncount it
   * @throws ApiError 429 when there are too many of its key, its account or its job.
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
        { retryAfterMs: 5000 },
      );
    }
    for (const [name] of bounds) this.#open.add(name, 1);
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      for (const [name] of bounds) this.#open.add(name, -1);
    };
  }
}

import { getHeapStatistics } from 'node:v8';
import { ApiError } from '../../shared/errors.ts';
import { abortError } from '../http/aborted.ts';

/** Share of V8's heap: what a request and its files become on their way to a vendor is several times as long. */
const heapShare = 0.25;

/** One job, and what it holds. */
export interface MemoryHolder {
  readonly job: { readonly account: string };
  /** Aborted when it stops. */
  readonly signal: AbortSignal;
  /** In bytes. */
  held: number;
}

/** A job that waits for room. */
interface Waiting {
  readonly holder: MemoryHolder;
  readonly bytes: number;
  readonly begin: () => void;
}

/**
 * What the jobs of this process hold in memory of their requests: those that lie in blobs, and files that become a part of what the
 * vendor is sent. Jobs wait in order until there is room. An account may use half of what the others leave free, so that theirs find
 * room; what is larger runs alone.
 */
export class RequestMemory {
  readonly #bytes: number;
  readonly #accounts = new Map<string, number>();
  readonly #waiting: Waiting[] = [];
  #total = 0;

  /** @param bytes of all jobs together; a larger one than V8's heap has room for is bounded by that */
  constructor(bytes: number, heapBytes: number = getHeapStatistics().heap_size_limit) {
    this.#bytes = Math.min(bytes, heapBytes * heapShare);
  }

  /** Resolves once the bytes have room, and are counted. @throws ApiError when the job is stopped before */
  async take(holder: MemoryHolder, bytes: number): Promise<void> {
    const { signal } = holder;
    if (signal.aborted) throw abortError(signal);
    await new Promise<void>((resolve, reject) => {
      const waiting: Waiting = {
        ...{ holder, bytes },
        begin: () => {
          signal.removeEventListener('abort', leave);
          resolve();
        },
      };
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
        reject(abortError(signal));
        this.#admit();
      };
      signal.addEventListener('abort', leave, { once: true });
      this.#waiting.push(waiting);
      this.#admit();
    });
  }

  /** Counts bytes of a file whose length is not known before. @throws ApiError 429 if they have no room */
  add(holder: MemoryHolder, bytes: number): void {
    if (!this.#fits(holder, bytes)) {
      const message = "Too many bytes of this account's files are under way. Try again later.";
      throw new ApiError('rate_limit_exceeded', message, { retryAfterMs: 1000 });
    }
    this.#count(holder, bytes);
  }

  /** Gives back what a job holds. */
  release(holder: MemoryHolder): void {
    this.#count(holder, -holder.held);
    this.#admit();
  }

  /** Begins the jobs that wait, in order. One is passed over while its account has too much, and none while all have. */
  #admit(): void {
    for (let at = 0; at < this.#waiting.length; ) {
      const { holder, bytes, begin } = this.#waiting[at] as Waiting;
      if (this.#fits(holder, bytes)) {
        this.#waiting.splice(at, 1);
        this.#count(holder, bytes);
        begin();
      } else if (this.#isAloneOfAccount(holder)) {
        return;
      } else {
        at++;
      }
    }
  }

  #fits(holder: MemoryHolder, bytes: number): boolean {
    const own = this.#accounts.get(holder.job.account) ?? 0;
    if (own + bytes <= (this.#bytes - (this.#total - own)) / 2) return true;
    if (this.#isAloneOfAccount(holder) && this.#total + bytes <= this.#bytes) return true;
    return this.#total === holder.held;
  }

  #isAloneOfAccount({ job, held }: MemoryHolder): boolean {
    return (this.#accounts.get(job.account) ?? 0) === held;
  }

  #count(holder: MemoryHolder, bytes: number): void {
    holder.held += bytes;
    this.#total += bytes;
    const own = (this.#accounts.get(holder.job.account) ?? 0) + bytes;
    if (own > 0) this.#accounts.set(holder.job.account, own);
    else this.#accounts.delete(holder.job.account);
  }
}

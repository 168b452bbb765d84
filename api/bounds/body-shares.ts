import { ApiError } from '../../shared/errors.ts';
import { Tally } from './tally.ts';

/** Whose body it is. */
export interface BodyOwner {
  readonly account: string;
  readonly apiKeyId: string;
}

/** What bodies may take together. */
export interface BodyShareLimits {
  /** Bytes of all callers. */
  readonly bytes: number;
  /** Bodies that one API key may be sending at a time. */
  readonly bodies: number;
  /** What the bytes are, as a refused caller is told. */
  readonly what: string;
}

/**
 * What the bodies take that are being read, or wait to be queued. An account may have half of what others leave, so that
 * something is left for the next one whoever came before; an API key may have half of its account's part.
 */
export class BodyShares {
  readonly #limits: BodyShareLimits;
  readonly #bytes = new Tally();
  readonly #bodies = new Tally();
  #total = 0;

  constructor(limits: BodyShareLimits) {
    this.#limits = limits;
  }

  /** Bytes under way, all callers together. */
  get total(): number {
    return this.#total;
  }

  /** Counts a body that begins. @throws ApiError 429. */
  open(owner: BodyOwner): BodyShare {
    const { account, key } = namesOf(owner);
    const { bodies } = this.#limits;
    if (this.#bodies.of(key) >= bodies || this.#bodies.of(account) >= 2 * bodies) {
      throw tooMuch(`This API key is sending ${bodies} requests at a time, which is as many as it may.`);
    }
    this.#bodies.add(key, 1);
    this.#bodies.add(account, 1);
    let held = 0;
    let isOpen = true;
    const count = (bytes: number): void => {
      held += bytes;
      this.#total += bytes;
      this.#bytes.add(key, bytes);
      this.#bytes.add(account, bytes);
    };
    return {
      grow: (bytes) => {
        if (!isOpen) return;
        this.#assertRoom(account, key, bytes);
        count(bytes);
      },
      shrink: (bytes) => {
        if (isOpen) count(-Math.min(bytes, held));
      },
      close: () => {
        if (!isOpen) return;
        isOpen = false;
        count(-held);
        this.#bodies.add(key, -1);
        this.#bodies.add(account, -1);
      },
    };
  }

  #assertRoom(account: string, key: string, bytes: number): void {
    const own = this.#bytes.of(account);
    const most = (this.#limits.bytes - (this.#total - own)) / 2;
    if (own + bytes <= most && this.#bytes.of(key) + bytes <= most / 2) return;
    throw tooMuch(`Too many bytes of this account's ${this.#limits.what} are under way. Try again later.`);
  }
}

/** One body's part. */
export interface BodyShare {
  /** Counts bytes that have come. @throws ApiError 429 when they are more than the caller may have under way. */
  grow(bytes: number): void;
  /** Some bytes are gone. */
  shrink(bytes: number): void;
  /** All of it is gone; again it does nothing. */
  close(): void;
}

function namesOf({ account, apiKeyId }: BodyOwner): { account: string; key: string } {
  return { account: `account ${account}`, key: `key ${apiKeyId}` };
}

function tooMuch(message: string): ApiError {
  return new ApiError('rate_limit_exceeded', message, { retryAfterMs: 1000 });
}

import { ApiError } from '../../shared/errors.ts';

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

/** What the bodies of an account, or of an API key, take. */
interface Part {
  bytes: number;
  bodies: number;
}

/** The parts of those who send something, by their id; nobody else takes memory. */
type Parts = Map<string, Part>;

/**
 * What the bodies take that are being read, or wait to be queued. An account may have half of what others leave, so that
 * something is left for the next one whoever came before; an API key may have half of its account's part.
 */
export class BodyShares {
  readonly #limits: BodyShareLimits;
  readonly #accounts: Parts = new Map();
  readonly #keys: Parts = new Map();
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
    const account = this.#accounts.get(owner.account) ?? { bytes: 0, bodies: 0 };
    const key = this.#keys.get(owner.apiKeyId) ?? { bytes: 0, bodies: 0 };
    const { bodies } = this.#limits;
    if (key.bodies >= bodies || account.bodies >= 2 * bodies) {
      throw tooMuch(`This API key is sending ${bodies} requests at a time, which is as many as it may.`);
    }
    join(this.#accounts, owner.account, account);
    join(this.#keys, owner.apiKeyId, key);
    let held = 0;
    let isOpen = true;
    const count = (bytes: number): void => {
      held += bytes;
      this.#total += bytes;
      key.bytes += bytes;
      account.bytes += bytes;
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
        leave(this.#accounts, owner.account, account);
        leave(this.#keys, owner.apiKeyId, key);
      },
    };
  }

  #assertRoom(account: Part, key: Part, bytes: number): void {
    const most = (this.#limits.bytes - (this.#total - account.bytes)) / 2;
    if (account.bytes + bytes <= most && key.bytes + bytes <= most / 2) return;
    throw tooMuch(`Too many bytes of this account's ${this.#limits.what} are under way. Try again later.`);
  }
}

function join(parts: Parts, id: string, part: Part): void {
  part.bodies += 1;
  if (part.bodies === 1) parts.set(id, part);
}

function leave(parts: Parts, id: string, part: Part): void {
  part.bodies -= 1;
  if (part.bodies === 0) parts.delete(id);
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

function tooMuch(message: string): ApiError {
  return new ApiError('rate_limit_exceeded', message, { retryAfterMs: 1000 });
}

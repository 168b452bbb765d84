import type { ServerResponse } from 'node:http';
import { ApiError } from '../../shared/errors.ts';
import type { Context } from '../state.ts';

/** Owner of a body. */
export interface BodyOwner {
  readonly account: string;
  readonly apiKeyId: string;
}

/** Bounds on the bodies of all callers together. */
export interface BodyShareLimits {
  /** Total bytes of all callers. */
  readonly bytes: number;
  /** Concurrent bodies of one API key. */
  readonly bodies: number;
  /** Name of the bytes in error messages. */
  readonly what: string;
}

/** Usage of one account or API key. */
interface Part {
  bytes: number;
  bodies: number;
}

/** Usage by id. Idle accounts and keys have no entry, so they take no memory. */
type Parts = Map<string, Part>;

/**
 * Memory used by bodies that are being read or wait to be queued. An account may use half of what the others leave free, so
 * that late arrivals find room; an API key may use half of its account's part.
 */
export class BodyShares {
  readonly #limits: BodyShareLimits;
  readonly #accounts: Parts = new Map();
  readonly #keys: Parts = new Map();
  #total = 0;

  constructor(limits: BodyShareLimits) {
    this.#limits = limits;
  }

  /** Bytes in flight, of all callers. */
  get total(): number {
    return this.#total;
  }

  /**
   * Counts a new body.
   * @param isRead whether it is finished work that is read: alone it may have all of its account's part, as it gets no smaller
   * @throws ApiError 429.
   */
  open(owner: BodyOwner, isRead = false): BodyShare {
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
        this.#assertRoom(account, key, bytes, isRead && account.bytes === held);
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

  #assertRoom(account: Part, key: Part, bytes: number, isAlone: boolean): void {
    const most = (this.#limits.bytes - (this.#total - account.bytes)) / 2;
    if (account.bytes + bytes <= most && (isAlone || key.bytes + bytes <= most / 2)) return;
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

/** The share of one body. */
export interface BodyShare {
  /** Counts received bytes. @throws ApiError 429 if the caller has too many bytes in flight. */
  grow(bytes: number): void;
  /** Releases some bytes. */
  shrink(bytes: number): void;
  /** Releases all bytes. Later calls do nothing. */
  close(): void;
}

/**
 * The share of what a request reads of earlier ones, which its own body may be small beside. It is opened when there is something to
 * count.
 * @param opened the share of its body, if that is counted: then both are
 */
export function shareOfReads(shares: BodyShares, owner: BodyOwner, opened?: BodyShare): BodyShare {
  let share = opened;
  let held = 0;
  let isClosed = false;
  return {
    grow: (bytes) => {
      if (isClosed) return;
      share ??= shares.open(owner, true);
      share.grow(bytes);
      held += bytes;
    },
    shrink: (bytes) => {
      share?.shrink(bytes);
      held -= Math.min(bytes, held);
      // Between two parts of a long answer there is nothing to count.
      if (held > 0 || share === opened) return;
      share?.close();
      share = undefined;
    },
    close: () => {
      isClosed = true;
      share?.close();
    },
  };
}

const sharesOfReplies = new WeakMap<ServerResponse, BodyShare>();

/**
 * The share of what a request reads of finished work, until its response is sent.
 * @param account whose work it is; on the console a session reads it, not an API key
 */
export function shareOfReply(
  shares: BodyShares,
  { res, state }: Pick<Context, 'res' | 'state'>,
  { account }: Pick<BodyOwner, 'account'>,
): BodyShare {
  const known = sharesOfReplies.get(res);
  if (known !== undefined) return known;
  const { apiKeyId = `console ${account}` } = (state.caller ?? {}) as Partial<BodyOwner>;
  const share = shareOfReads(shares, { account, apiKeyId });
  sharesOfReplies.set(res, share);
  res.once('close', () => share.close());
  return share;
}

function tooMuch(message: string): ApiError {
  return new ApiError('rate_limit_exceeded', message, { reason: 'bodies', retryAfterMs: 1000 });
}

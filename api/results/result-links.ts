import { createHmac, timingSafeEqual } from 'node:crypto';
import { isOwnBlob } from '../../shared/blobs/blobs.ts';

/** Path of results, before the blob's id. */
const resultsPath = '/results/';

/** A file of an account, by the id of its blob. */
export interface OwnFile {
  readonly account: string;
  readonly file: string;
}

/**
 * Links to result files. They are signed, so that they work without an API key, and expire, so that access is temporary.
 * Equal files and expiries have equal links in every api process.
 */
export class ResultLinks {
  readonly #key: () => Buffer;
  readonly #clock: { now(): number };

  /**
   * @param key returns the key that all api processes share, 32 bytes. @throws ApiError 503 while it is not known
   * @param clock by which links expire: that of the jobs' times
   */
  constructor(key: () => Buffer, clock: { now(): number } = Date) {
    this.#key = key;
    this.#clock = clock;
  }

  /**
   * Returns a link to the file, valid until `expiresAt` (ms since 1970).
   * @param baseUrl as known to the reader; the signature does not depend on it
   * @throws Error for a file of another account: the link would give access to it.
   */
  link(baseUrl: string, { account, file }: OwnFile, expiresAt: number): string {
    if (!isOwnBlob(account, file)) throw new Error('a result names a file that is not its own');
    const expires = Math.floor(expiresAt / 1000);
    return `${baseUrl}${resultsPath}${file}?expires=${expires}&signature=${this.#sign(file, expires)}`;
  }

  /** Verifies the signature and expiry of a link. */
  verify(file: string, expires: string, signature: string): 'valid' | 'expired' | 'forged' {
    // Each link has exactly one valid spelling.
    if (!/^[1-9]\d{0,11}$/.test(expires)) return 'forged';
    const given = Buffer.from(signature);
    const right = Buffer.from(this.#sign(file, Number(expires)));
    if (given.length !== right.length || !timingSafeEqual(given, right)) return 'forged';
    return Number(expires) * 1000 < this.#clock.now() ? 'expired' : 'valid';
  }

  #sign(file: string, expires: number): string {
    return createHmac('sha256', this.#key()).update(`${file} ${expires}`).digest('base64url');
  }
}

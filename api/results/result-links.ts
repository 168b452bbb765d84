import { createHmac, timingSafeEqual } from 'node:crypto';
import { isOwnBlob } from '../../shared/blobs/account-blobs.ts';

/** Path under which results are fetched; the blob's id follows. */
const resultsPath = '/results/';

/** A file of an account's, by the id of its blob. */
export interface OwnFile {
  readonly account: string;
  readonly file: string;
}

/**
 * Links to result files: signed, so that they work without an API key, and expiring, so that they are no key for ever.
 * The same file with the same end has the same link, on every api process.
 */
export class ResultLinks {
  readonly #key: Buffer;

  /** @param key shared by all api processes, 32 bytes */
  constructor(key: Buffer) {
    this.#key = key;
  }

  /**
   * A link to the file, valid until `expiresAt` (ms since 1970).
   * @param baseUrl the one its reader knows; the signature is the same under each
   * @throws Error for a file that is not the account's: a link to it would be a key to what others have stored.
   */
  link(baseUrl: string, { account, file }: OwnFile, expiresAt: number): string {
    if (!isOwnBlob(account, file)) throw new Error('a result names a file that is not its own');
    const expires = Math.floor(expiresAt / 1000);
    return `${baseUrl}${resultsPath}${file}?expires=${expires}&signature=${this.#sign(file, expires)}`;
  }

  /** Whether a link's parts belong together, and its time is not over. */
  verify(file: string, expires: string, signature: string): 'valid' | 'expired' | 'forged' {
    // Each link has one way to be written.
    if (!/^[1-9]\d{0,11}$/.test(expires)) return 'forged';
    const given = Buffer.from(signature);
    const right = Buffer.from(this.#sign(file, Number(expires)));
    if (given.length !== right.length || !timingSafeEqual(given, right)) return 'forged';
    return Number(expires) * 1000 < Date.now() ? 'expired' : 'valid';
  }

  #sign(file: string, expires: number): string {
    return createHmac('sha256', this.#key).update(`${file} ${expires}`).digest('base64url');
  }
}

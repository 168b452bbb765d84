import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** Browsers keep a cookie for at most 400 days. */
const keptSeconds = 400 * 86_400;

/**
 * Recognizes browsers with earlier sign-ins by a signed cookie per user. Strangers who guess passwords have none, so their
 * failed attempts do not lock out the user's own browsers. The cookie alone grants no access.
 */
export class KnownDevices {
  readonly #secret: () => Buffer;

  /** @param secret returns the secret that all api processes share. @throws ApiError 503 while it is not known */
  constructor(secret: () => Buffer) {
    this.#secret = secret;
  }

  /** Returns the id of a request's browser if the user has signed in with it before. */
  find(cookies: string, email: string): string | undefined {
    const name = this.#nameOf(email);
    for (const cookie of cookies.split(';')) {
      const [given = '', value = ''] = cookie.trim().split('=', 2);
      const [id = '', signature = ''] = given === name ? value.split('.', 2) : [];
      if (id !== '' && isSame(signature, this.#sign(`${id} ${email}`))) return id;
    }
    return undefined;
  }

  /** Makes the `Set-Cookie` value that identifies a browser from now on. Only the sign-in receives it. */
  cookie(email: string, path: string): string {
    const id = randomBytes(12).toString('base64url');
    const value = `${id}.${this.#sign(`${id} ${email}`)}`;
    return `${this.#nameOf(email)}=${value}; Max-Age=${keptSeconds}; Path=${path}; HttpOnly; SameSite=Lax`;
  }

  /** Each user of a browser has a separate cookie, whose name does not reveal the user. */
  #nameOf(email: string): string {
    return `sluice.device_${this.#sign(email).slice(0, 12)}`;
  }

  #sign(text: string): string {
    const key = createHmac('sha256', this.#secret()).update('known devices').digest();
    return createHmac('sha256', key).update(text).digest('base64url');
  }
}

/** Compares signatures in constant time. */
export function isSame(one: string, other: string): boolean {
  const [first, second] = [Buffer.from(one), Buffer.from(other)];
  return first.length === second.length && timingSafeEqual(first, second);
}

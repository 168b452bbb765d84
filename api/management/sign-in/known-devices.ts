import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** Browsers keep a cookie for 400 days at most. */
const keptSeconds = 400 * 86_400;

/**
 * Knows browsers that somebody has signed in with before, by a signed cookie of each user: strangers who guess passwords have
 * none, so what is counted against them does not count against the user's own browsers. It opens nothing by itself.
 */
export class KnownDevices {
  readonly #key: Buffer;

  /** @param secret shared by all api processes */
  constructor(secret: Buffer) {
    this.#key = createHmac('sha256', secret).update('known devices').digest();
  }

  /** Id of the browser that a request comes from, if its user has signed in with it; else undefined. */
  find(cookies: string, email: string): string | undefined {
    const name = this.#nameOf(email);
    for (const cookie of cookies.split(';')) {
      const [given = '', value = ''] = cookie.trim().split('=', 2);
      const [id = '', signature = ''] = given === name ? value.split('.', 2) : [];
      if (id !== '' && isSame(signature, this.#sign(`${id} ${email}`))) return id;
    }
    return undefined;
  }

  /** The cookie by which a browser is known from now on, as `Set-Cookie` has it. Only the sign-in gets to see it. */
  cookie(email: string, path: string): string {
    const id = randomBytes(12).toString('base64url');
    const value = `${id}.${this.#sign(`${id} ${email}`)}`;
    return `${this.#nameOf(email)}=${value}; Max-Age=${keptSeconds}; Path=${path}; HttpOnly; SameSite=Lax`;
  }

  /** Each user of a browser has a cookie of their own; its name does not tell whose it is. */
  #nameOf(email: string): string {
    return `sluice.device_${this.#sign(email).slice(0, 12)}`;
  }

  #sign(text: string): string {
    return createHmac('sha256', this.#key).update(text).digest('base64url');
  }
}

function isSame(one: string, other: string): boolean {
  const [first, second] = [Buffer.from(one), Buffer.from(other)];
  return first.length === second.length && timingSafeEqual(first, second);
}

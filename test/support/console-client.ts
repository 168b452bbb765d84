import assert from 'node:assert/strict';

/** What a call of the console came to. */
export interface ConsoleAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** The JSON body; null where there is none. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read whatever the route answers.
  readonly body: any;
}

/** A browser's part in the console: it keeps cookies, and says which page asks. */
export class ConsoleClient {
  readonly #url: string;
  readonly #cookies = new Map<string, string>();

  /** @param url of the api process, without a path */
  constructor(url: string) {
    this.#url = url;
  }

  /** What it sends as `Cookie`. */
  get cookie(): string {
    return [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  }

  /** @param headers over the usual ones; one that is '' is not sent */
  async call(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<ConsoleAnswer> {
    const all = { origin: new URL(this.#url).origin, cookie: this.cookie, ...headers };
    const sent = new Headers(Object.entries(all).filter(([, value]) => value !== ''));
    if (body !== undefined) sent.set('content-type', 'application/json');
    const answer = await fetch(path.startsWith('http') ? path : `${this.#url}${path}`, {
      method,
      headers: sent,
      redirect: 'manual',
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    for (const cookie of answer.headers.getSetCookie()) this.#keep(cookie);
    const text = await answer.text();
    const isJson = answer.headers.get('content-type')?.includes('json') ?? false;
    return { status: answer.status, headers: answer.headers, body: isJson ? JSON.parse(text) : null };
  }

  /** Makes a user, who is signed in then. */
  async signUp(email: string, password = 'a long password'): Promise<void> {
    const answer = await this.call('POST', '/console/api/auth/sign-up/email', { name: 'Somebody', email, password });
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    const signedIn = await this.signIn(email, password);
    assert.equal(signedIn.status, 200, JSON.stringify(signedIn.body));
  }

  async signIn(email: string, password = 'a long password'): Promise<ConsoleAnswer> {
    return this.call('POST', '/console/api/auth/sign-in/email', { email, password });
  }

  #keep(cookie: string): void {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
    if (value === '' || /max-age=0\b/i.test(cookie)) this.#cookies.delete(name);
    else this.#cookies.set(name, value);
  }
}

import { createHash, createSign, generateKeyPairSync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Who signs in there. */
export interface OidcUser {
  sub: string;
  email: string;
  email_verified: boolean;
  name: string;
}

interface Grant {
  readonly nonce: string | null;
  readonly challenge: string | null;
  readonly redirectUri: string;
}

export const oidcClient = { id: 'sluice', secret: 'a client secret' };

/** A small identity provider: authorization code with PKCE, ID tokens signed with RS256. */
export class OidcServer {
  /** Who is signed in there at the moment. */
  user: OidcUser = { sub: 'u-1', email: 'ada@corp.example', email_verified: true, name: 'Ada' };
  /** Signs with a key that it does not publish. */
  isForged = false;
  readonly #keys = generateKeyPairSync('rsa', { modulusLength: 2048 });
  readonly #otherKeys = generateKeyPairSync('rsa', { modulusLength: 2048 });
  readonly #grants = new Map<string, Grant>();
  readonly #server = createServer((request, response) => void this.#answer(request, response));

  static async start(): Promise<OidcServer> {
    const server = new OidcServer();
    server.#server.listen(0, '127.0.0.1');
    await once(server.#server, 'listening');
    return server;
  }

  get issuer(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '', this.issuer);
    const send = (status: number, body: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    if (url.pathname === '/.well-known/openid-configuration') send(200, this.#discovery());
    else if (url.pathname === '/keys') send(200, this.#publicKeys());
    else if (url.pathname === '/authorize') this.#authorize(url, response);
    else if (url.pathname === '/token') send(...this.#token(new URLSearchParams(await textOf(request))));
    else send(404, {});
  }

  #discovery(): object {
    return {
      issuer: this.issuer,
      authorization_endpoint: `${this.issuer}/authorize`,
      token_endpoint: `${this.issuer}/token`,
      jwks_uri: `${this.issuer}/keys`,
      id_token_signing_alg_values_supported: ['RS256'],
    };
  }

  #publicKeys(): object {
    return { keys: [{ ...this.#keys.publicKey.export({ format: 'jwk' }), kid: 'k1', alg: 'RS256', use: 'sig' }] };
  }

  #authorize(url: URL, response: ServerResponse): void {
    const { searchParams: asked } = url;
    const code = randomBytes(12).toString('hex');
    const redirectUri = asked.get('redirect_uri') ?? '';
    this.#grants.set(code, { nonce: asked.get('nonce'), challenge: asked.get('code_challenge'), redirectUri });
    const back = new URL(redirectUri);
    back.searchParams.set('code', code);
    back.searchParams.set('state', asked.get('state') ?? '');
    response.writeHead(302, { location: back.href }).end();
  }

  #token(form: URLSearchParams): [number, object] {
    const code = form.get('code') ?? '';
    const grant = this.#grants.get(code);
    this.#grants.delete(code);
    const verifier = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    const isRight =
      grant !== undefined &&
      grant.challenge === verifier &&
      grant.redirectUri === form.get('redirect_uri') &&
      form.get('client_id') === oidcClient.id &&
      form.get('client_secret') === oidcClient.secret;
    if (!isRight) return [400, { error: 'invalid_grant' }];
    const idToken = this.#sign({ ...this.user, nonce: grant.nonce });
    return [200, { access_token: 'access', token_type: 'Bearer', expires_in: 60, id_token: idToken }];
  }

  #sign(claims: object): string {
    const now = Math.floor(Date.now() / 1000);
    const payload = { iss: this.issuer, aud: oidcClient.id, iat: now, exp: now + 60, ...claims };
    const text = [{ alg: 'RS256', typ: 'JWT', kid: 'k1' }, payload]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.');
    const { privateKey } = this.isForged ? this.#otherKeys : this.#keys;
    return `${text}.${createSign('RSA-SHA256').update(text).sign(privateKey, 'base64url')}`;
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text;
}

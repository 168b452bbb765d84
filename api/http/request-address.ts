import { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { Middleware } from 'koa';
import type { Config } from '../../shared/config/config.ts';
import { isLoopback } from '../../shared/config/ingress-settings.ts';
import { ApiError } from '../../shared/errors.ts';
import type { Context, State } from '../state.ts';
import { livenessPaths, readinessPaths } from './health-paths.ts';
import type { ForwardedHeaders } from './trusted-proxies.ts';

/** Paths that accept a WebSocket; each has its route in app.ts. */
const socketPaths: readonly RegExp[] = [/^\/v1\/jobs\/[^/?]+\/ws\/?(\?|$)/i, /^\/v1\/responses\/?(\?|$)/i];

/**
 * The server's request class. Once a server listens for upgrades, Node treats every request with an `Upgrade` header as one
 * and reads no body of it, even if the client merely offers HTTP/2 (`Upgrade: h2c`, as Java's HttpClient does). So the flag
 * is set only for a WebSocket's handshake on a path that accepts one; the header is otherwise ignored (RFC 9110, section
 * 7.8). The path is the corrected one.
 */
export class UpgradableRequest extends IncomingMessage {
  // Not private fields: Node's constructor sets `url` and `upgrade` before such fields exist.
  declare private asked: boolean | null;
  declare private target: string;

  /** The target with the corrected path: no code sees the original. */
  // @ts-expect-error: Node's type has it as a property.
  override get url(): string {
    return this.target;
  }

  override set url(target: string) {
    this.target = gatewayPath(target);
  }

  get upgrade(): boolean {
    return this.asked === true && isHandshake(this);
  }

  set upgrade(asked: boolean | null) {
    this.asked = asked;
  }
}

function isHandshake({ method, headers, url = '' }: IncomingMessage): boolean {
  return (
    method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket' && socketPaths.some((path) => path.test(url))
  );
}

/** First segments of the routes under `/v1`. */
export const resources = [
  ...['audio', 'chat', 'completions', 'embeddings', 'images', 'jobs', 'key', 'messages', 'models', 'responses'],
  ...['usage', 'videos'],
] as const;

/** A mistyped path of the API under a base URL: that of another gateway, with `/v1` twice, or without it. */
const slipped = new RegExp(
  `^/(?:(?:(?:openai|api)/)?(?:v1/)+)?(${resources.join('|')})(?=/|$)`,
  // Routes match in any case, while decisions by path compare lower case.
  'i',
);
const usual = new RegExp(`^/v1/(?:${resources.join('|')})(?=[/?]|$)(?!.*//)`);

/**
 * Corrects the target of a request: a path of the API under a mistyped base URL (`//v1/…`, `/v1/v1/…`, `/openai/v1/…`,
 * `/api/v1/…`, without `/v1`) becomes the intended path. It only produces paths under `/v1/`, with their guards; other
 * targets stay as they are.
 */
export function gatewayPath(target: string): string {
  // A fast path for nearly every client.
  if (usual.test(target)) return target;
  if (!target.startsWith('/')) return target;
  const end = target.search(/[?#]|$/);
  const path = target.slice(0, end).replace(/\/{2,}/g, '/');
  const match = slipped.exec(path);
  if (match === null) return target;
  const [prefix, resource = ''] = match;
  return `/v1/${resource.toLowerCase()}${path.slice(prefix.length)}${target.slice(end)}`;
}

/**
 * Ensures that every request has a path. A target without one (`CONNECT host:443`, `GET http://`), or one that cannot be
 * parsed, gets a path for the log, until `refuseOddRequests` refuses the request.
 */
export const requestTarget: Middleware<State> = (ctx, next) => {
  if (!hasPath(ctx)) {
    // Further data on such a connection may be meant for another server.
    ctx.res.shouldKeepAlive = false;
    ctx.state.hasOddTarget = true;
    ctx.req.url = `/${encodeURIComponent(ctx.req.url ?? '')}`;
  }
  return next();
};

/**
 * Refuses requests whose target is not a path, those without a Host or with several, and unsupported expectations, where errors are
 * reported and counted.
 * @throws ApiError 400, 417.
 */
export const refuseOddRequests: Middleware<State> = (ctx, next) => {
  const { headers, rawHeaders } = ctx.req;
  if (ctx.state.hasOddTarget) {
    throw new ApiError('invalid_request_error', 'The target of the request is not a path of this server.');
  }
  if (headers.host === undefined && ctx.req.httpVersion === '1.1') {
    ctx.res.shouldKeepAlive = false;
    throw new ApiError('invalid_request_error', 'The request has no Host header, which HTTP/1.1 requires.');
  }
  if (hasTwoHosts(rawHeaders)) {
    ctx.res.shouldKeepAlive = false;
    throw new ApiError('invalid_request_error', 'The request has more than one Host header.');
  }
  if (headers.expect !== undefined && headers.expect.toLowerCase() !== '100-continue') {
    ctx.res.shouldKeepAlive = false;
    throw new ApiError('expectation_failed', "The only supported expectation is '100-continue'.");
  }
  return next();
};

/** Node takes the first of several, a proxy before it perhaps another, by which it let the request pass (RFC 9112, section 3.2). */
function hasTwoHosts(rawHeaders: readonly string[]): boolean {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  return hosts > 1;
}

function hasPath(ctx: Context): boolean {
  try {
    // Koa's type omits that it is null if the target has no path.
    return (ctx.path as string | null)?.startsWith('/') === true;
  } catch {
    return false;
  }
}

/** Health checks may use any host, such as the address of a pod. */
const healthPaths: ReadonlySet<string> = new Set([...livenessPaths, ...readinessPaths]);

/**
 * Refuses requests under a foreign host name: a page of another site may point its own name at this machine (DNS rebinding),
 * and is then of the same origin. Undefined if no public URL is set and the gateway listens beyond this machine: then any
 * name may be right.
 * @throws ApiError 403.
 */
export function checkHost({
  config,
  forwarded,
}: {
  readonly config: Pick<Config, 'host' | 'publicUrls'>;
  readonly forwarded: ForwardedHeaders;
}): Middleware<State> | undefined {
  const { publicUrls, host } = config;
  if (publicUrls.length === 0 && !isLoopback(host)) return undefined;
  const names = new Set([
    'localhost',
    '127.0.0.1',
    '[::1]',
    host.toLowerCase(),
    ...publicUrls.map((url) => new URL(url).hostname),
  ]);
  const isOwn = (given: string): boolean => {
    const name = given.toLowerCase().replace(/:\d*$/, '');
    // An address cannot be rebound. Without a public URL, only those of this machine are expected.
    return names.has(name) || (publicUrls.length > 0 && isIP(name.replace(/^\[|\]$/g, '')) !== 0);
  };
  // Caches the last name, as callers repeat it.
  let last = '';
  return (ctx, next) => {
    const given = ctx.req.headers.host ?? '';
    if (given === last) return next();
    if (isOwn(given)) {
      last = given;
      return next();
    }
    if (isOwn(forwarded.ingress(ctx.req).host) || healthPaths.has(ctx.path)) return next();
    throw new ApiError(
      'permission_denied',
      'The gateway is not known under the name in the Host header. Its operator can add it to PUBLIC_URL.',
    );
  };
}

interface Known {
  readonly url: string;
  readonly host: string;
  readonly protocol: string;
}

/**
 * The base URLs of the gateway. The Host header, or a trusted proxy, selects the one of a request, but responses contain
 * only these URLs: a forged host must not get into somebody's link.
 */
export class BaseUrls {
  /** For requests that match no other base URL. No base URL has a trailing slash. */
  readonly main: string;
  /** The `Origin` that browsers send for pages under these URLs. */
  readonly origins: readonly string[];
  readonly all: readonly string[];
  readonly #known: readonly Known[];
  readonly #forwarded: ForwardedHeaders;

  /** @param urls the main one first */
  constructor(urls: readonly [string, ...string[]], forwarded: ForwardedHeaders) {
    this.main = urls[0];
    this.all = urls;
    this.#known = urls.map((url) => ({ url, host: new URL(url).host, protocol: new URL(url).protocol }));
    this.origins = urls.map((url) => new URL(url).origin);
    this.#forwarded = forwarded;
  }

  /** Returns the base URL of a request. */
  of(request: IncomingMessage): string {
    if (this.#known.length === 1) return this.main;
    const { host, protocol } = this.#forwarded.ingress(request);
    const named = this.#known.filter((each) => each.host === withoutUsualPort(host, each.protocol));
    // If only one of them has the host, a proxy that terminates TLS need not report the protocol.
    return (named.find((each) => each.protocol === `${protocol}:`) ?? named[0])?.url ?? this.main;
  }
}

/** Drops the default port of the scheme: URLs omit it, a Host header may have it. */
function withoutUsualPort(host: string, protocol: string): string {
  const usual = protocol === 'https:' ? ':443' : ':80';
  return host.endsWith(usual) ? host.slice(0, -usual.length) : host;
}

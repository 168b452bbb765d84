import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { Middleware } from 'koa';
import type { Config } from '../../shared/config/config.ts';
import { isLoopback } from '../../shared/config/ingress-settings.ts';
import { ApiError } from '../../shared/errors.ts';
import { livenessPaths, readinessPaths } from '../endpoints/health.ts';
import type { Context, State } from '../state.ts';
import type { ForwardedHeaders } from './trusted-proxies.ts';

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
 * Refuses requests whose target is not a path, and unsupported expectations, where errors are reported and counted.
 * @throws ApiError 400, 417.
 */
export const refuseOddRequests: Middleware<State> = (ctx, next) => {
  const { headers } = ctx.req;
  if (ctx.state.hasOddTarget) {
    throw new ApiError('invalid_request_error', 'The target of the request is not a path of this server.');
  }
  if (headers.expect !== undefined && headers.expect.toLowerCase() !== '100-continue') {
    ctx.res.shouldKeepAlive = false;
    throw new ApiError('expectation_failed', "The only supported expectation is '100-continue'.");
  }
  return next();
};

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

import type { IncomingMessage } from 'node:http';
import type { ForwardedHeaders } from './trusted-proxies.ts';

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

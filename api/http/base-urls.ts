import type { IncomingMessage } from 'node:http';
import type { ForwardedHeaders } from './trusted-proxies.ts';

interface Known {
  readonly url: string;
  readonly host: string;
  readonly protocol: string;
}

/**
 * The base URLs under which callers reach the gateway. Which of them a request was made under is told by its Host header,
 * or by what a trusted proxy says, but what is written into an answer is always one of these: who writes another host into
 * a request must not find it in somebody's link.
 */
export class BaseUrls {
  /** That of requests which came some other way. Without a slash at the end, as all of them. */
  readonly main: string;
  /** What browsers send as `Origin` of pages that lie under them. */
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

  /** The one that a request was made under. */
  of(request: IncomingMessage): string {
    if (this.#known.length === 1) return this.main;
    const { host, protocol } = this.#forwarded.ingress(request);
    const named = this.#known.filter((each) => each.host === withoutUsualPort(host, each.protocol));
    // Where only one of them has the host, a proxy that takes TLS off need not say so.
    return (named.find((each) => each.protocol === `${protocol}:`) ?? named[0])?.url ?? this.main;
  }
}

/** URLs leave out the port that their scheme has anyway; a Host header may name it. */
function withoutUsualPort(host: string, protocol: string): string {
  const usual = protocol === 'https:' ? ':443' : ':80';
  return host.endsWith(usual) ? host.slice(0, -usual.length) : host;
}

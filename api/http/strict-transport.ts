import type { Middleware } from 'koa';
import type { State } from '../state.ts';
import type { BaseUrls } from './request-address.ts';
import { isSecure } from './set-cookies.ts';
import type { ForwardedHeaders } from './trusted-proxies.ts';

/** A year, as browsers' preload lists require. */
const policy = 'max-age=31536000';

/** Tells browsers that came by https to come by nothing else. */
export function strictTransport(services: {
  readonly baseUrls: BaseUrls;
  readonly forwarded: ForwardedHeaders;
}): Middleware<State> {
  return (ctx, next) => {
    if (isSecure(ctx, services)) ctx.set('strict-transport-security', policy);
    return next();
  };
}

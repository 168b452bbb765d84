import type { Middleware } from 'koa';
import type { Services } from '../services.ts';
import type { State } from '../state.ts';
import { isSecure } from './set-cookies.ts';

/** A year, as browsers' own lists ask for. */
const policy = 'max-age=31536000';

/** Tells browsers that came by https to come by nothing else. */
export function strictTransport(services: Pick<Services, 'baseUrls' | 'forwarded'>): Middleware<State> {
  return (ctx, next) => {
    if (isSecure(ctx, services)) ctx.set('strict-transport-security', policy);
    return next();
  };
}

import type { Middleware } from 'koa';
import type { Context, State } from '../state.ts';

/**
 * Sees to it that every request has a path, for whatever comes after it. A target that has none (`CONNECT host:443`,
 * `GET http://`), or cannot be parsed, becomes an unknown path: an error in the API's shape, and a line of the log.
 */
export const requestTarget: Middleware<State> = (ctx, next) => {
  if (!hasPath(ctx)) {
    // What follows in such a connection may be meant for somebody else.
    ctx.res.shouldKeepAlive = false;
    ctx.req.url = `/${encodeURIComponent(ctx.req.url ?? '')}`;
  }
  return next();
};

function hasPath(ctx: Context): boolean {
  try {
    // Koa's type does not say so, but it is null where the target has none.
    return (ctx.path as string | null)?.startsWith('/') === true;
  } catch {
    return false;
  }
}

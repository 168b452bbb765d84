import type { Middleware } from 'koa';
import { ApiError } from '../../shared/errors.ts';
import type { Context, State } from '../state.ts';

/**
 * Sees to it that every request has a path, for whatever comes after it. A target that has none (`CONNECT host:443`,
 * `GET http://`), or cannot be parsed, is one for the log, until `refuseOddRequests` refuses the request.
 */
export const requestTarget: Middleware<State> = (ctx, next) => {
  if (!hasPath(ctx)) {
    // What follows in such a connection may be meant for somebody else.
    ctx.res.shouldKeepAlive = false;
    ctx.state.hasOddTarget = true;
    ctx.req.url = `/${encodeURIComponent(ctx.req.url ?? '')}`;
  }
  return next();
};

/**
 * Refuses requests whose target is no path, and those that expect what no server does, where errors are told and counted.
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
    // Koa's type does not say so, but it is null where the target has none.
    return (ctx.path as string | null)?.startsWith('/') === true;
  } catch {
    return false;
  }
}

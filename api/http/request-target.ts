import type { Middleware } from 'koa';
import { ApiError } from '../../shared/errors.ts';
import type { Context, State } from '../state.ts';

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

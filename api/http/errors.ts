import type { Middleware } from 'koa';
import { ApiError } from '../../shared/errors.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import type { Endpoint } from '../pipeline/endpoint.ts';
import type { RefusedRequests } from '../refused-requests/refused-requests.ts';
import type { Context, State } from '../state.ts';
import { anthropicErrorBody } from './anthropic-error.ts';
import { discardBody } from './body/discard-body.ts';
import { anthropicLimitHeaders } from './request-report.ts';

/**
 * The only catch: turns every error into a response in the API's error shape, which can be looked up by the request's id.
 * Logs unexpected errors.
 */
export function errors({ log, refused }: { log: Logger; refused: RefusedRequests }): Middleware<State> {
  return async (ctx, next) => {
    try {
      await next();
    } catch (thrown) {
      const error = ApiError.from(thrown);
      ctx.state.streamError = error;
      logFault(log, ctx.state, error);
      if (ctx.res.headersSent || !ctx.writable) {
        // A stream's own code writes its errors as events; this error occurred outside of it.
        ctx.respond = false;
        // For the access log only; the client has disconnected.
        if (!ctx.res.headersSent) ctx.res.statusCode = error.status;
        ctx.res.destroy();
        return;
      }
      ctx.respond = true;
      ctx.status = error.status;
      const headers = error.headers();
      ctx.set(headers);
      if (ctx.state.errorBody === anthropicErrorBody) ctx.set(anthropicLimitHeaders(headers));
      ctx.body = ctx.state.errorBody?.(error, ctx) ?? error.toWire();
      refused.note(ctx, error);
    }
    // Of a refused key, say. Node would read it as fast as it comes, however much it is.
    if (!ctx.req.complete) discardBody(ctx.req);
  };
}

/** Logs an error that is the gateway's own and has a cause. */
export function logFault(log: Logger, { jobId }: Pick<State, 'jobId'>, error: ApiError): void {
  const isOurs = error.status >= 500 && error.cause !== undefined;
  if (isOurs) log.error({ err: error.cause, job: jobId, code: error.code }, error.message);
}

/**
 * Selects the shape of a request's errors before any can occur: for the key, the method, an unknown path. Endpoints with
 * their own error body use it for all paths under theirs.
 */
export function errorShape(endpoints: readonly Endpoint[]): Middleware<State> {
  const shaped = endpoints.filter(({ errorBody }) => errorBody !== undefined);
  return (ctx, next) => {
    const endpoint = shaped.find(({ path }) => ctx.path === path || ctx.path.startsWith(`${path}/`));
    ctx.state.errorBody = endpoint?.errorBody ?? (wantsAnthropicModels(ctx) ? anthropicErrorBody : undefined);
    // Anthropic's clients read the request's id from this header.
    if (ctx.state.errorBody === anthropicErrorBody) ctx.state.headers['request-id'] = `req_${ctx.state.jobId}`;
    return next();
  };
}

/** Whether a request for models is from one of Anthropic's clients, which always send their API version. */
export function wantsAnthropicModels({ path, headers }: Pick<Context, 'path' | 'headers'>): boolean {
  return /^\/v1\/models(\/|$)/.test(path) && headers['anthropic-version'] !== undefined;
}

import type { Middleware } from 'koa';
import { ApiError } from '../../shared/errors.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import type { RefusedRequests } from '../refused-requests/refused-requests.ts';
import type { State } from '../state.ts';

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
      ctx.set(error.headers());
      ctx.body = ctx.state.errorBody?.(error, ctx) ?? error.toWire();
      refused.note(ctx, error);
    }
  };
}

/** Logs an error that is the gateway's own and has a cause. */
export function logFault(log: Logger, { jobId }: Pick<State, 'jobId'>, error: ApiError): void {
  const isOurs = error.status >= 500 && error.cause !== undefined;
  if (isOurs) log.error({ err: error.cause, job: jobId, code: error.code }, error.message);
}

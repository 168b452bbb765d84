import type { Middleware } from 'koa';
import { anthropicErrorBody } from '../endpoints/messages/anthropic-error.ts';
import { wantsAnthropicModels } from '../endpoints/models/models.ts';
import type { Endpoint } from '../pipeline/endpoint.ts';
import type { State } from '../state.ts';

/**
 * Decides in which shape a request's errors are told, before anything can go wrong with it: the key, the method, a path
 * that is not there. Under the path of an endpoint with an error body of its own that is the one.
 */
export function errorShape(endpoints: readonly Endpoint[]): Middleware<State> {
  const shaped = endpoints.filter(({ errorBody }) => errorBody !== undefined);
  return (ctx, next) => {
    const endpoint = shaped.find(({ path }) => ctx.path === path || ctx.path.startsWith(`${path}/`));
    ctx.state.errorBody = endpoint?.errorBody ?? (wantsAnthropicModels(ctx) ? anthropicErrorBody : undefined);
    // The name under which Anthropic's clients look for the request's id.
    if (ctx.state.errorBody === anthropicErrorBody) ctx.set('request-id', `req_${ctx.state.jobId}`);
    return next();
  };
}

import type { Middleware } from 'koa';
import { anthropicErrorBody } from '../endpoints/messages/anthropic-error.ts';
import { wantsAnthropicModels } from '../endpoints/models/models.ts';
import type { Endpoint } from '../pipeline/endpoint.ts';
import type { State } from '../state.ts';

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
    if (ctx.state.errorBody === anthropicErrorBody) ctx.set('request-id', `req_${ctx.state.jobId}`);
    return next();
  };
}

import type { Middleware } from 'koa';
import { ApiError } from '../../../shared/errors.ts';
import type { CallerDirectory } from '../../auth/authenticate.ts';
import { readKey } from '../../auth/caller.ts';
import { refuseForeignPage } from '../../http/foreign-page.ts';
import type { ForwardedHeaders } from '../../http/trusted-proxies.ts';
import type { Context, State } from '../../state.ts';
import type { RequireSessionDependencies } from './require-session.ts';
import type { Session } from './session.ts';

/** Dependencies of `requireOperator`. */
export interface RequireOperatorDependencies extends RequireSessionDependencies {
  readonly callers: CallerDirectory;
  readonly forwarded: ForwardedHeaders;
}

/**
 * Admits operators to `/admin/v1`: by an operator key (`ctx.state.caller`), or an operator's session (`ctx.state.session`).
 * Handlers after it read neither: they take the account from the path or the query.
 * @throws ApiError 401 without either, 403 for a standard key, a user's session, or a change by another site's page.
 */
export function requireOperator(services: RequireOperatorDependencies): Middleware<State> {
  return async (ctx, next) => {
    const isOperator =
      ctx.headers.authorization === undefined
        ? await hasOperatorSession(ctx, services)
        : await hasOperatorKey(ctx, services);
    if (!isOperator) throw new ApiError('permission_denied', 'Only operators may do this.');
    ctx.state.facts.operator = operatorOf(ctx);
    await next();
  };
}

/** The acting operator: id of a user or an API key. */
export function operatorOf(ctx: Context): string {
  const session = ctx.state.session as Session | undefined;
  return session?.userId ?? ctx.state.caller.apiKeyId;
}

async function hasOperatorSession(ctx: Context, services: RequireOperatorDependencies): Promise<boolean> {
  refuseForeignPage(ctx, services);
  const session = await services.sessions.find(ctx, services.baseUrls.of(ctx.req));
  if (session === undefined) {
    throw new ApiError('invalid_api_key', 'Send an operator key (Authorization: Bearer …), or sign in as an operator.');
  }
  ctx.state.session = session;
  return session.role === 'operator';
}

async function hasOperatorKey(ctx: Context, { callers, forwarded }: RequireOperatorDependencies): Promise<boolean> {
  const found = await callers.find(readKey(ctx.headers), () => forwarded.callerNetwork(ctx.req));
  const caller = await callers.assertActiveSoon(found);
  ctx.state.caller = caller;
  return caller.kind === 'operator';
}

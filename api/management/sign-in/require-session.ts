import type { Middleware } from 'koa';
import type { Config } from '../../../shared/config/config.ts';
import { ApiError } from '../../../shared/errors.ts';
import { refuseForeignPage } from '../../http/foreign-page.ts';
import type { BaseUrls } from '../../http/request-address.ts';
import type { Context, State } from '../../state.ts';
import type { Session } from './session.ts';
import type { UserSessions } from './user-sessions.ts';

/** Dependencies of `requireSession`. */
export interface RequireSessionDependencies {
  readonly config: Config;
  readonly baseUrls: BaseUrls;
  readonly sessions: UserSessions;
}

/**
 * Identifies the user by the session's cookie, for the console's routes: `ctx.state.session`.
 * @throws ApiError 401 without a valid session, 403 for a change requested by another site's page.
 */
export function requireSession(services: RequireSessionDependencies): Middleware<State> {
  return async (ctx, next) => {
    refuseForeignPage(ctx, services);
    ctx.state.session = await signedIn(ctx, services);
    await next();
  };
}

/** The session of a request. @throws ApiError 401 without one that is still valid. */
export async function signedIn(ctx: Context, { sessions, baseUrls }: RequireSessionDependencies): Promise<Session> {
  const session = await sessions.find(ctx, baseUrls.of(ctx.req));
  if (session === undefined)
    throw new ApiError('invalid_api_key', 'You are not signed in, or your session has expired.');
  return session;
}

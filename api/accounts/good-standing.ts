import type { Middleware } from 'koa';
import { findAccount } from '../../shared/accounts.ts';
import type { Database } from '../../shared/database/database.ts';
import { ApiError } from '../../shared/errors.ts';
import type { State } from '../state.ts';

/**
 * Behind `requireSession`: refuses users of a suspended account what would go on working for them, such as a new API key.
 * @throws ApiError 403.
 */
export function requireGoodStanding(db: Database): Middleware<State> {
  return async (ctx, next) => {
    const account = await findAccount(db, ctx.state.session.account);
    if (account?.suspendedAt !== undefined) {
      throw new ApiError('permission_denied', 'This account is suspended. Ask the operator of this service.');
    }
    await next();
  };
}

import type { Middleware } from 'koa';
import { findAccount } from '../../../shared/accounts/accounts.ts';
import type { Config } from '../../../shared/config/config.ts';
import type { Database } from '../../../shared/database/database.ts';
import { accountSuspended } from '../../auth/account-suspended.ts';
import { BoundedReads, readMs } from '../../bounds/bounded-reads.ts';
import type { State } from '../../state.ts';

/**
 * After `requireSession`: refuses users of a suspended account what would outlast the suspension, such as a new API key.
 * @throws ApiError 403.
 */
export function requireGoodStanding(db: Database, config: Pick<Config, 'contact'>): Middleware<State> {
  const reads = new BoundedReads(readMs, 'The account cannot be checked for now.');
  return async (ctx, next) => {
    const account = await reads.read(() => findAccount(db, ctx.state.session.account));
    if (account?.suspendedAt !== undefined) throw accountSuspended(config);
    await next();
  };
}

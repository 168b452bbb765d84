import type { Middleware } from 'koa';
import { findAccount } from '../../../shared/accounts/accounts.ts';
import type { Database } from '../../../shared/database/database.ts';
import type { RedisClient } from '../../../shared/redis/redis.ts';
import { BoundedReads, readMs } from '../../bounds/bounded-reads.ts';
import type { State } from '../../state.ts';
import { readBalance } from '../sign-in/read-balance.ts';

/** `GET /console/api/session`: who is signed in, and the account, its balance in dollars. */
export function readSession(services: { readonly redis: RedisClient }, db: Database): Middleware<State> {
  const reads = new BoundedReads(readMs, 'The account cannot be read for now.');
  return async (ctx) => {
    ctx.state.endpoint = 'console.session';
    const { userId, email, name, role, authenticator, account: id } = ctx.state.session;
    const account = await reads.read(() => findAccount(db, id));
    ctx.body = {
      user: { id: userId, email, name, role, authenticator },
      account: {
        id,
        name: account?.name ?? id,
        balance: account === undefined ? null : await readBalance(services.redis, account),
        suspended: account?.suspendedAt !== undefined,
      },
    };
  };
}

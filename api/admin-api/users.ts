import type { Middleware } from 'koa';
import { z } from 'zod';
import { findAccount } from '../../shared/accounts.ts';
import type { Database } from '../../shared/database/database.ts';
import { ApiError } from '../../shared/errors.ts';
import { changeUser, findUser, listUsers, type User } from '../../shared/users.ts';
import { listPage } from '../console-api/list-page.ts';
import { readFields } from '../console-api/read-fields.ts';
import { readText } from '../console-api/read-query.ts';
import { invalidParameter } from '../endpoints/invalid-request.ts';
import { readPageQuery } from '../endpoints/page.ts';
import type { Services } from '../services.ts';
import type { State } from '../state.ts';
import { noAccount, pageSize } from './accounts.ts';

const changed = z.strictObject({
  role: z.enum(['user', 'operator']).optional(),
  account_id: z.string().max(100).optional(),
});

/** `/admin/v1/users`: who signs in, what they may do, and a link to a new password for those who cannot. */
export function userRoutes(
  { sessions, baseUrls }: Services,
  db: Database,
): Record<'list' | 'change' | 'resetPassword', Middleware<State>> {
  return {
    list: async (ctx) => {
      ctx.state.endpoint = 'admin.users';
      const { limit, after } = readPageQuery(ctx.query, pageSize);
      const account = readText(ctx.query, 'account');
      const whose = account === undefined ? {} : { account };
      ctx.body = listPage((await listUsers(db, { limit: limit + 1, after, ...whose })).map(userObject), limit);
    },
    change: async (ctx) => {
      ctx.state.endpoint = 'admin.users';
      const { role, account_id: accountId } = await readFields(ctx, changed);
      if (accountId !== undefined && (await findAccount(db, accountId)) === undefined) throw noAccount('account_id');
      const user = await changeUser(db, ctx.params.id as string, { role, accountId });
      if (user === undefined) throw noUser();
      if (user === 'last_operator')
        throw invalidParameter('role', 'This is the last operator: name another one first.');
      ctx.body = userObject(user);
    },
    resetPassword: async (ctx) => {
      ctx.state.endpoint = 'admin.password-reset';
      const user = await findUser(db, ctx.params.id as string);
      if (user === undefined) throw noUser();
      ctx.status = 201;
      ctx.body = { url: await sessions.resetLink(baseUrls.of(ctx.req), user.id) };
    },
  };
}

function noUser(): ApiError {
  return new ApiError('not_found', 'No such user.');
}

function userObject(user: User) {
  return {
    id: user.id,
    object: 'user' as const,
    email: user.email,
    name: user.name,
    role: user.role,
    account_id: user.accountId,
    created_at: user.createdAt,
  };
}

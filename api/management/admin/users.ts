import type { Middleware } from 'koa';
import { z } from 'zod';
import { findAccount } from '../../../shared/accounts/accounts.ts';
import { changeUser, createUser, deleteUser, findUser, listUsers, type User } from '../../../shared/accounts/users.ts';
import type { Config } from '../../../shared/config/config.ts';
import type { Database } from '../../../shared/database/database.ts';
import { ApiError } from '../../../shared/errors.ts';
import { readPageQuery } from '../../http/page.ts';
import { readFields } from '../../http/read-fields.ts';
import { invalidQuery, readText } from '../../http/read-query.ts';
import type { BaseUrls } from '../../http/request-address.ts';
import { invalidParameter } from '../../pipeline/request-fields.ts';
import type { State } from '../../state.ts';
import { listPage } from '../console/list-page.ts';
import type { UserSessions } from '../sign-in/user-sessions.ts';
import { noAccount, pageSize } from './accounts.ts';

const role = z.enum(['user', 'operator']);
const accountId = z.string().max(100);

/** The body of `PATCH /admin/v1/users/{id}`. */
export const userChangeFields = z.strictObject({
  role: role.optional(),
  account_id: accountId.optional(),
  disabled: z.boolean().optional(),
});

/** The body of `POST /admin/v1/users`. */
export const invitationFields = z.strictObject({
  email: z.email().max(254).toLowerCase(),
  name: z.string().trim().min(1).max(200).optional(),
  role: role.default('user'),
  account_id: accountId.optional(),
});

/** Routes of `/admin/v1/users`: users with their roles, and links to choose a new password. */
export function userRoutes(
  {
    config,
    sessions,
    baseUrls,
  }: { readonly config: Pick<Config, 'signUpCredit'>; readonly sessions: UserSessions; readonly baseUrls: BaseUrls },
  db: Database,
): Record<'list' | 'invite' | 'change' | 'remove' | 'resetPassword', Middleware<State>> {
  return {
    list: async (ctx) => {
      ctx.state.endpoint = 'admin.users';
      const { limit, after } = readPageQuery(ctx.query, pageSize);
      if (after !== undefined && (await findUser(db, after)) === undefined)
        throw invalidQuery('after', 'the id of a user');
      const filter = { account: readText(ctx.query, 'account'), search: readText(ctx.query, 'search') };
      ctx.body = listPage((await listUsers(db, { limit: limit + 1, after, ...filter })).map(userObject), limit);
    },
    invite: async (ctx) => {
      ctx.state.endpoint = 'admin.users';
      const { email, name, role, account_id: accountId } = await readFields(ctx, invitationFields);
      await checkAccount(db, accountId);
      const credit = config.signUpCredit;
      const user = await createUser(db, { email, name: name ?? nameOf(email), role, accountId, credit });
      if (user === undefined) throw invalidParameter('email', 'There is a user with this address already.');
      ctx.status = 201;
      ctx.body = { ...userObject(user), invitation_url: await sessions.invitation(baseUrls.of(ctx.req), user.id) };
    },
    change: async (ctx) => {
      ctx.state.endpoint = 'admin.users';
      const { role, account_id: accountId, disabled: isDisabled } = await readFields(ctx, userChangeFields);
      await checkAccount(db, accountId);
      const user = await changeUser(db, ctx.params.id as string, { role, accountId, isDisabled });
      if (user === undefined) throw noUser();
      if (user === 'last_operator') throw lastOperator(role === 'user' ? 'role' : 'disabled');
      ctx.body = userObject(user);
    },
    remove: async (ctx) => {
      ctx.state.endpoint = 'admin.users';
      const id = ctx.params.id as string;
      const isRemoved = await deleteUser(db, id);
      if (isRemoved === 'last_operator') throw lastOperator(null);
      if (!isRemoved) throw noUser();
      ctx.body = { id, object: 'user', deleted: true };
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

/** @throws ApiError 400 for an unknown account. */
async function checkAccount(db: Database, id: string | undefined): Promise<void> {
  if (id !== undefined && (await findAccount(db, id)) === undefined) throw noAccount('account_id');
}

/** Default name of a user who has not given one. */
function nameOf(email: string): string {
  return email.slice(0, email.indexOf('@'));
}

function lastOperator(param: string | null): ApiError {
  return new ApiError('invalid_request_error', 'This is the last operator who can sign in: name another one first.', {
    param,
  });
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
    disabled: user.isDisabled,
    created_at: user.createdAt,
  };
}

import type { Middleware } from 'koa';
import { z } from 'zod';
import { findAccount } from '../../../shared/accounts/accounts.ts';
import { changeUser, createUser, deleteUser, findUser, listUsers, type User } from '../../../shared/accounts/users.ts';
import type { Config } from '../../../shared/config/config.ts';
import type { Database } from '../../../shared/database/database.ts';
import { ApiError } from '../../../shared/errors.ts';
import { BoundedReads } from '../../bounds/bounded-reads.ts';
import { readPageQuery } from '../../http/page.ts';
import { readFields } from '../../http/read-fields.ts';
import { invalidQuery, readText } from '../../http/read-query.ts';
import type { BaseUrls } from '../../http/request-address.ts';
import { invalidParameter } from '../../pipeline/request-fields.ts';
import type { State } from '../../state.ts';
import { listPage } from '../console/list-page.ts';
import type { UserSessions } from '../sign-in/user-sessions.ts';
import { noAccount, pageSize, patienceMs } from './accounts.ts';

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
  const waits = new BoundedReads(patienceMs, 'Users cannot be read or changed for now.');
  return {
    list: async (ctx) => {
      ctx.state.endpoint = 'admin.users';
      const { limit, after } = readPageQuery(ctx.query, pageSize);
      const filter = { account: readText(ctx.query, 'account'), search: readText(ctx.query, 'search') };
      const users = await waits.read(async () => {
        if (after !== undefined && (await findUser(db, after)) === undefined)
          throw invalidQuery('after', 'the id of a user');
        return await listUsers(db, { limit: limit + 1, after, ...filter });
      });
      ctx.body = listPage(users.map(userObject), limit);
    },
    invite: async (ctx) => {
      ctx.state.endpoint = 'admin.users';
      const { email, name, role, account_id: accountId } = await readFields(ctx, invitationFields);
      const asked = { email, name: name ?? nameOf(email), role, accountId, credit: config.signUpCredit };
      ctx.body = await waits.change(async (beforeWrite) => {
        await checkAccount(db, accountId);
        const user = await createUser(db, { ...asked, beforeWrite });
        if (user === undefined) throw invalidParameter('email', 'There is a user with this address already.');
        return { ...userObject(user), invitation_url: await sessions.invitation(baseUrls.of(ctx.req), user.id) };
      });
      ctx.status = 201;
    },
    change: async (ctx) => {
      ctx.state.endpoint = 'admin.users';
      const { role, account_id: accountId, disabled: isDisabled } = await readFields(ctx, userChangeFields);
      const user = await waits.read(async () => {
        await checkAccount(db, accountId);
        return await changeUser(db, ctx.params.id as string, { role, accountId, isDisabled });
      });
      if (user === undefined) throw noUser();
      if (user === 'last_operator') throw lastOperator(role === 'user' ? 'role' : 'disabled');
      ctx.body = userObject(user);
    },
    remove: async (ctx) => {
      ctx.state.endpoint = 'admin.users';
      const id = ctx.params.id as string;
      const isRemoved = await waits.read(() => deleteUser(db, id));
      if (isRemoved === 'last_operator') throw lastOperator(null);
      if (!isRemoved) throw noUser();
      ctx.body = { id, object: 'user', deleted: true };
    },
    resetPassword: async (ctx) => {
      ctx.state.endpoint = 'admin.password-reset';
      ctx.body = await waits.read(async () => {
        const user = await findUser(db, ctx.params.id as string);
        if (user === undefined) throw noUser();
        return { url: await sessions.resetLink(baseUrls.of(ctx.req), user.id) };
      });
      ctx.status = 201;
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
    account_name: user.accountName,
    disabled: user.isDisabled,
    created_at: user.createdAt,
  };
}

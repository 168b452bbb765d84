import type { Middleware } from 'koa';
import { z } from 'zod';
import {
  type AccountWithMoney,
  ensureAccountIn,
  findAccount,
  listAccounts,
  newAccountId,
} from '../../../shared/accounts/accounts.ts';
import { changeAccount } from '../../../shared/accounts/change-account.ts';
import type { Database } from '../../../shared/database/database.ts';
import { ApiError } from '../../../shared/errors.ts';
import { toDollars } from '../../../shared/money/cost.ts';
import type { RedisClient } from '../../../shared/redis/redis.ts';
import { BoundedReads } from '../../bounds/bounded-reads.ts';
import { readPageQuery } from '../../http/page.ts';
import { readFields } from '../../http/read-fields.ts';
import { invalidQuery, readText } from '../../http/read-query.ts';
import type { State } from '../../state.ts';
import { listPage } from '../console/list-page.ts';
import { readBalance } from '../sign-in/read-balance.ts';

export const pageSize = { usual: 50, most: 200 };
/** Timeout for database and Redis together. */
export const patienceMs = 10_000;

const name = z.string().trim().min(1).max(200);
const queueWeight = z.int().min(1).max(100);
const maxPriority = z.enum(['normal', 'high']);
/** The body of `POST /admin/v1/accounts`. */
export const newAccountFields = z.strictObject({
  name,
  is_unlimited: z.boolean().default(false),
  queue_weight: queueWeight.default(1),
  queue_by_key: z.boolean().default(false),
  max_priority: maxPriority.default('normal'),
});
/** The body of `PATCH /admin/v1/accounts/{id}`. */
export const accountChangeFields = z.strictObject({
  name: name.optional(),
  is_unlimited: z.boolean().optional(),
  suspended: z.boolean().optional(),
  queue_weight: queueWeight.optional(),
  queue_by_key: z.boolean().optional(),
  max_priority: maxPriority.optional(),
});

/** Routes of `/admin/v1/accounts`. */
export function accountRoutes(
  { redis }: { readonly redis: RedisClient },
  db: Database,
): Record<'list' | 'create' | 'retrieve' | 'change', Middleware<State>> {
  const waits = new BoundedReads(patienceMs, 'Accounts cannot be read or changed for now.');
  const show = async (account: AccountWithMoney | undefined) => {
    if (account === undefined) throw noAccount();
    // A single account's balance includes its unfinished jobs.
    return { ...accountObject(account), balance: await readBalance(redis, account) };
  };
  return {
    list: async (ctx) => {
      ctx.state.endpoint = 'admin.accounts';
      const { limit, after } = readPageQuery(ctx.query, pageSize);
      const filter = { limit: limit + 1, after, search: readText(ctx.query, 'search') };
      const accounts = await waits.read(async () => {
        if (after !== undefined && (await findAccount(db, after)) === undefined) {
          throw invalidQuery('after', 'the id of an account');
        }
        return await listAccounts(db, filter);
      });
      ctx.body = listPage(accounts.map(accountObject), limit);
    },
    create: async (ctx) => {
      ctx.state.endpoint = 'admin.accounts';
      const fields = await readFields(ctx, newAccountFields);
      const account = {
        id: newAccountId(),
        name: fields.name,
        isUnlimited: fields.is_unlimited,
        queueWeight: fields.queue_weight,
        maxPriority: fields.max_priority,
        queueByKey: fields.queue_by_key,
      };
      ctx.body = await waits.change(async (beforeWrite) => {
        await db.transaction().execute(async (transaction) => {
          beforeWrite();
          await ensureAccountIn(transaction, account);
        });
        return await show(await findAccount(db, account.id));
      });
      ctx.status = 201;
    },
    retrieve: async (ctx) => {
      ctx.state.endpoint = 'admin.accounts';
      ctx.body = await waits.read(async () => await show(await findAccount(db, ctx.params.id as string)));
    },
    change: async (ctx) => {
      ctx.state.endpoint = 'admin.accounts';
      const fields = await readFields(ctx, accountChangeFields);
      const change = {
        name: fields.name,
        isUnlimited: fields.is_unlimited,
        isSuspended: fields.suspended,
        queueWeight: fields.queue_weight,
        queueByKey: fields.queue_by_key,
        maxPriority: fields.max_priority,
      };
      const id = ctx.params.id as string;
      ctx.body = await waits.read(async () => await show(await changeAccount(db, redis, id, change)));
    },
  };
}

/** An account as shown to operators: dollars, and milliseconds since 1970. Amounts are those of the database. */
function accountObject({ credit, charged, ...account }: AccountWithMoney) {
  return {
    id: account.id,
    object: 'account' as const,
    name: account.name,
    is_unlimited: account.isUnlimited,
    suspended: account.suspendedAt !== undefined,
    suspended_at: account.suspendedAt ?? null,
    queue_weight: account.queueWeight,
    queue_by_key: account.queueByKey,
    max_priority: account.maxPriority,
    created_at: account.createdAt,
    credit: toDollars(credit),
    charged: toDollars(charged),
    balance: account.isUnlimited ? null : toDollars(credit - charged),
  };
}

export function noAccount(param: string | null = null): ApiError {
  return new ApiError('not_found', 'No such account.', { param });
}

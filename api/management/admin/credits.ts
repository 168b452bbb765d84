import type { Middleware } from 'koa';
import { z } from 'zod';
import { findAccount } from '../../../shared/accounts/accounts.ts';
import { addCredit, type Credit, listCredits, maxCredit } from '../../../shared/accounts/credits.ts';
import type { Database } from '../../../shared/database/database.ts';
import type { ApiError } from '../../../shared/errors.ts';
import { parseDollars, toDollars } from '../../../shared/money/cost.ts';
import type { RedisClient } from '../../../shared/redis/redis.ts';
import { BoundedReads } from '../../bounds/bounded-reads.ts';
import { readPageQuery } from '../../http/page.ts';
import { readFields } from '../../http/read-fields.ts';
import { invalidQuery } from '../../http/read-query.ts';
import { invalidParameter, keyReused, readIdempotencyKey } from '../../pipeline/request-fields.ts';
import type { State } from '../../state.ts';
import { listPage } from '../console/list-page.ts';
import { operatorOf } from '../sign-in/require-operator.ts';
import { noAccount, pageSize, patienceMs } from './accounts.ts';

/** The body of `POST /admin/v1/accounts/{id}/credits`. */
export const newCreditFields = z.strictObject({
  /** Dollars; negative to remove credit. */
  amount: z.number(),
  note: z.string().trim().max(500).default(''),
});

/** `/admin/v1/accounts/{id}/credits`: what an account was given, and giving it more, or taking back what is left of it. */
export function creditRoutes(
  { redis }: { readonly redis: RedisClient },
  db: Database,
): Record<'list' | 'add', Middleware<State>> {
  const waits = new BoundedReads(patienceMs, 'Credits cannot be read or added for now.');
  return {
    list: async (ctx) => {
      ctx.state.endpoint = 'admin.credits';
      const { limit, after } = readPageQuery(ctx.query, pageSize);
      const id = ctx.params.id as string;
      const credits = await waits.read(async () => {
        if ((await findAccount(db, id)) === undefined) throw noAccount();
        return await listCredits(db, id, { limit: limit + 1, after });
      });
      if (credits === undefined) throw invalidQuery('after', 'the id of a credit of this account');
      ctx.body = listPage(credits.map(creditObject), limit);
    },
    add: async (ctx) => {
      ctx.state.endpoint = 'admin.credits';
      const { amount: dollars, note } = await readFields(ctx, newCreditFields);
      const asked = {
        accountId: ctx.params.id as string,
        amount: nanosOf(dollars),
        note,
        createdBy: operatorOf(ctx),
        idempotencyKey: readIdempotencyKey(ctx.headers['idempotency-key']),
      };
      // With an idempotency key it can be repeated, whatever became of it.
      const credit = await (asked.idempotencyKey === undefined
        ? waits.change((beforeWrite) => addCredit(db, redis, { ...asked, beforeWrite }))
        : waits.read(() => addCredit(db, redis, asked)));
      if (credit === 'no_account') throw noAccount();
      if (credit === 'reused') throw keyReused();
      if (credit === 'short') throw tooLittle();
      if (credit === 'too_much') throw tooMuch();
      ctx.status = 201;
      ctx.body = creditObject(credit);
    },
  };
}

/** Converts dollars to whole nano-dollars. @throws ApiError 400 for zero, too much, and fractions of a nano-dollar. */
function nanosOf(dollars: number): number {
  if (Math.abs(dollars) > toDollars(maxCredit)) throw dollars > 0 ? tooMuch() : tooLittle();
  // Numbers below a millionth are formatted with an exponent.
  const nanos = parseDollars(Math.abs(dollars) < 1e-6 ? dollars.toFixed(20).replace(/0+$/, '') : String(dollars));
  if (nanos === undefined || nanos === 0) {
    throw invalidParameter('amount', "Invalid 'amount': expected dollars, not zero, with nine decimals at most.");
  }
  return nanos;
}

function tooLittle(): ApiError {
  return invalidParameter('amount', 'The account has less than that left: what is spent cannot be taken back.');
}

function tooMuch(): ApiError {
  return invalidParameter('amount', `An account can be given ${toDollars(maxCredit)} dollars in all at most.`);
}

function creditObject(credit: Credit) {
  return {
    id: credit.id,
    object: 'credit' as const,
    account: credit.accountId,
    amount: toDollars(credit.amount),
    note: credit.note,
    created_at: credit.createdAt,
    created_by: credit.createdBy,
  };
}

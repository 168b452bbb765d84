import type { Middleware } from 'koa';
import type { KeyRange } from '../../../shared/accounts/list-keys.ts';
import type { Database } from '../../../shared/database/database.ts';
import type { RedisClient } from '../../../shared/redis/redis.ts';
import { readFields } from '../../http/read-fields.ts';
import type { State } from '../../state.ts';
import { KeyAdministration } from '../keys/key-administration.ts';
import { keyChangeOf, operatorKeyChangeFields, operatorNewKeyFields, rotationFields } from '../keys/key-fields.ts';

/** The routes `/admin/v1/accounts/{id}/keys` and `/admin/v1/keys/{id}…`: every account's keys, and operator keys. */
export function adminKeyRoutes({ redis }: { readonly redis: RedisClient }, db: Database) {
  const keys = new KeyAdministration(db, redis);
  const all: KeyRange = { account: undefined, kinds: ['standard', 'operator'] };

  return {
    /** `GET /admin/v1/accounts/{id}/keys` */
    list: async (ctx) => {
      ctx.body = await keys.list({ ...all, account: ctx.params.id as string }, ctx.query);
    },
    /** `POST /admin/v1/accounts/{id}/keys` */
    create: async (ctx) => {
      const { kind, ...fields } = await readFields(ctx, operatorNewKeyFields);
      ctx.body = await keys.create(ctx.params.id as string, fields.name, keyChangeOf(fields), kind);
      ctx.status = 201;
    },
    /** `PATCH /admin/v1/keys/{id}` */
    change: async (ctx) => {
      const change = keyChangeOf(await readFields(ctx, operatorKeyChangeFields));
      ctx.body = await keys.change(all, ctx.params.id as string, change);
    },
    /** `DELETE /admin/v1/keys/{id}` */
    revoke: async (ctx) => {
      ctx.body = await keys.revoke(all, ctx.params.id as string);
    },
    /** `POST /admin/v1/keys/{id}/rotate` */
    rotate: async (ctx) => {
      const { overlap_seconds: overlap } = await readFields(ctx, rotationFields);
      ctx.body = await keys.rotate(all, ctx.params.id as string, overlap * 1000);
      ctx.status = 201;
    },
  } satisfies Record<string, Middleware<State>>;
}

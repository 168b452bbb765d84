import type { Middleware } from 'koa';
import type { KeyRange } from '../../../shared/accounts/list-keys.ts';
import type { Database } from '../../../shared/database/database.ts';
import type { RedisClient } from '../../../shared/redis/redis.ts';
import { readFields } from '../../http/read-fields.ts';
import type { Context, State } from '../../state.ts';
import { KeyAdministration } from '../keys/key-administration.ts';
import { keyChangeFields, keyChangeOf, newKeyFields, rotationFields } from '../keys/key-fields.ts';
import type { AttemptLimits } from '../sign-in/attempt-limits.ts';

/** Keys that an account may create in a time: each leaves a row, and a start reads all revoked ones. */
const making = { most: 200, windowMs: 3_600_000 };

/** The routes `/console/api/keys…`: a user's own keys. Operator keys are the operators' affair, also in their account. */
export function consoleKeyRoutes(
  { redis, attempts }: { readonly redis: RedisClient; readonly attempts: AttemptLimits },
  db: Database,
) {
  const keys = new KeyAdministration(db, redis);
  const takeMaking = ({ state }: Context): Promise<void> => attempts.take(`keys of ${state.session.account}`, making);
  const own = ({ state }: Context): KeyRange => ({ account: state.session.account, kinds: ['standard'] });

  return {
    /** `GET /console/api/keys` */
    list: async (ctx) => {
      ctx.body = await keys.list(own(ctx), ctx.query);
    },
    /** `POST /console/api/keys` */
    create: async (ctx) => {
      const fields = await readFields(ctx, newKeyFields);
      await takeMaking(ctx);
      ctx.body = await keys.create(ctx.state.session.account, fields.name, keyChangeOf(fields));
      ctx.status = 201;
    },
    /** `PATCH /console/api/keys/{id}` */
    change: async (ctx) => {
      const change = keyChangeOf(await readFields(ctx, keyChangeFields));
      ctx.body = await keys.change(own(ctx), ctx.params.id as string, change);
    },
    /** `DELETE /console/api/keys/{id}` */
    revoke: async (ctx) => {
      ctx.body = await keys.revoke(own(ctx), ctx.params.id as string);
    },
    /** `POST /console/api/keys/{id}/rotate` */
    rotate: async (ctx) => {
      const { overlap_seconds: overlap } = await readFields(ctx, rotationFields);
      await takeMaking(ctx);
      ctx.body = await keys.rotate(own(ctx), ctx.params.id as string, overlap * 1000);
      ctx.status = 201;
    },
  } satisfies Record<string, Middleware<State>>;
}

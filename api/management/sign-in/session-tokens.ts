import { createHash } from 'node:crypto';
import type { BetterAuthPlugin, DBAdapter, Where } from 'better-auth';

/** The stored form of a session's token. A token is 190 random bits: one round of SHA-256 hides it. */
function tokenAtRest(token: unknown): string {
  return createHash('sha256').update(String(token)).digest('base64url');
}

/**
 * A better-auth plugin that stores session tokens hashed, so that a reader of the database (a backup, an exposed file)
 * cannot sign in as somebody, even with the secret that signs cookies. A row found by its token contains the token; other
 * rows contain the hash, which grants nothing.
 */
export function hashedSessionTokens(): BetterAuthPlugin {
  return { id: 'hashed-session-tokens', init: ({ adapter }) => ({ context: { adapter: hashing(adapter) } }) };
}

function hashing<Adapter extends Omit<DBAdapter, 'transaction'>>(adapter: Adapter): Adapter {
  const wrapped: Omit<DBAdapter, 'transaction'> = {
    ...adapter,
    create: async (query) => {
      if (query.model !== 'session') return adapter.create(query);
      const { token } = query.data as { token?: unknown };
      const row = await adapter.create({ ...query, data: { ...query.data, token: tokenAtRest(token) } });
      return { ...row, token } as never;
    },
    findOne: async (query) => withToken(await adapter.findOne(hashed(query)), query),
    findMany: async <T>(query: Parameters<DBAdapter['findMany']>[0]) => {
      const rows = await adapter.findMany<T>(hashed(query));
      return rows.map((row) => withToken(row, query));
    },
    count: (query) => adapter.count(hashed(query)),
    update: async (query) => withToken(await adapter.update(hashed(query)), query),
    updateMany: (query) => adapter.updateMany(hashed(query)),
    delete: (query) => adapter.delete(hashed(query)),
    deleteMany: (query) => adapter.deleteMany(hashed(query)),
    consumeOne: async (query) => withToken(await adapter.consumeOne(hashed(query)), query),
  };
  const { transaction } = adapter as Partial<DBAdapter>;
  if (transaction !== undefined) {
    Object.assign(wrapped, {
      transaction: <R>(run: Parameters<typeof transaction<R>>[0]) => transaction<R>((inner) => run(hashing(inner))),
    });
  }
  return wrapped as Adapter;
}

interface Query {
  readonly model: string;
  readonly where?: Where[] | undefined;
}

function hashed<Q extends Query>(query: Q): Q {
  if (query.model !== 'session' || query.where === undefined) return query;
  const where = query.where.map((condition) =>
    condition.field !== 'token'
      ? condition
      : {
          ...condition,
          value: Array.isArray(condition.value) ? condition.value.map(tokenAtRest) : tokenAtRest(condition.value),
        },
  );
  return { ...query, where };
}

/** Replaces the hash in a row that was requested by its token with that token. */
function withToken<Row>(row: Row, { model, where }: Query): Row {
  const asked = where?.find(({ field, operator }) => field === 'token' && (operator ?? 'eq') === 'eq');
  if (model !== 'session' || asked === undefined || row === null) return row;
  return { ...row, token: asked.value };
}

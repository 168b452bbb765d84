import { contains } from '../database/contains.ts';
import type { Database } from '../database/database.ts';
import type { ApiKey, KeyKind } from './api-key.ts';
import { apiKeyOf } from './api-key-row.ts';

/** Selects keys. */
export interface KeyRange {
  /** Owner of the keys; undefined: all accounts. */
  readonly account: string | undefined;
  readonly kinds: readonly KeyKind[];
}

/** The key with this id, if it is in the range. */
export async function findApiKey(db: Database, range: KeyRange, id: string): Promise<ApiKey | undefined> {
  const row = await keysOf(db, range).where('id', '=', id).executeTakeFirst();
  return row && apiKeyOf(row);
}

/** Selects a page of keys. */
export interface KeyPageFilter {
  readonly limit: number;
  /** The key to start after. */
  readonly after: ApiKey | undefined;
  /** Part of the name or of the shown prefix, case-insensitive, or an id. */
  readonly search?: string | undefined;
}

/** Lists keys, newest first. */
export async function listKeyPage(
  db: Database,
  range: KeyRange,
  { limit, after, search }: KeyPageFilter,
): Promise<ApiKey[]> {
  let query = keysOf(db, range).orderBy('created_at', 'desc').orderBy('id', 'desc').limit(limit);
  if (search !== undefined) {
    query = query.where((is) => is.or([contains('name', search), contains('prefix', search), is('id', '=', search)]));
  }
  if (after !== undefined) {
    const { createdAt, id } = after;
    query = query.where((is) =>
      is.or([is('created_at', '<', createdAt), is.and([is('created_at', '=', createdAt), is('id', '<', id)])]),
    );
  }
  return (await query.execute()).map(apiKeyOf);
}

function keysOf(db: Database, { account, kinds }: KeyRange) {
  const query = db.selectFrom('api_keys').selectAll().where('kind', 'in', kinds);
  return account === undefined ? query : query.where('account_id', '=', account);
}

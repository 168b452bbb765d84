import type { ParsedUrlQuery } from 'node:querystring';
import { jobIdFromWire } from '../../shared/ids.ts';
import { invalidQuery } from './read-query.ts';

/** The requested page of a list. */
export interface PageQuery {
  readonly limit: number;
  readonly order: 'asc' | 'desc';
  /** The item after which the page begins. */
  readonly after: string | undefined;
}

/** A page in OpenAI's format of lists. */
export interface Page<Item> {
  readonly object: 'list';
  readonly data: readonly Item[];
  readonly first_id: string | null;
  readonly last_id: string | null;
  readonly has_more: boolean;
}

/** Reads `limit`, `order` (`desc` by default) and `after`. @throws ApiError 400 that names the parameter. */
export function readPageQuery(
  query: ParsedUrlQuery,
  { usual, most, least = 1 }: { usual: number; most: number; least?: number },
): PageQuery {
  const { limit, order, after } = query;
  const count = limit === undefined ? usual : /^\d{1,9}$/.test(String(limit)) ? Number(limit) : -1;
  if (count < least || count > most) throw invalidQuery('limit', `a whole number from ${least} to ${most}`);
  if (order !== undefined && order !== 'asc' && order !== 'desc') throw invalidQuery('order', '"asc" or "desc"');
  if (Array.isArray(after)) throw invalidQuery('after', 'one id');
  return { limit: count, order: order ?? 'desc', after: after || undefined };
}

/** Reads the job after which a page of a list of jobs begins, from `after`. @throws ApiError 400. */
export function readAfterJob(after: string | undefined): string | undefined {
  if (after === undefined) return undefined;
  const id = jobIdFromWire(after);
  if (id === undefined) throw invalidQuery('after', 'the id of a job');
  return id;
}

/** Makes a page of items, which include one more than `limit` if there are more. */
export function pageOf<Item extends { readonly id?: unknown }>(items: readonly Item[], limit: number): Page<Item> {
  const data = items.slice(0, limit);
  const id = (item: Item | undefined): string | null => (typeof item?.id === 'string' ? item.id : null);
  return { object: 'list', data, first_id: id(data[0]), last_id: id(data.at(-1)), has_more: items.length > limit };
}

/** A page of a list, as the console and operators are shown it. */
export interface ListPage<Item> {
  readonly object: 'list';
  readonly data: readonly Item[];
  readonly has_more: boolean;
  /** What to send as `after` for the next page; null on the last one. */
  readonly next: string | null;
}

/** The page of items that have been read, one more than asked for where there are more. */
export function listPage<Item extends { readonly id: string }>(items: readonly Item[], limit: number): ListPage<Item> {
  const data = items.slice(0, limit);
  const hasMore = items.length > limit;
  return { object: 'list', data, has_more: hasMore, next: hasMore ? (data.at(-1)?.id ?? null) : null };
}

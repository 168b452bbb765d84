/** A page of a list in the format of the console and of operators. */
export interface ListPage<Item> {
  readonly object: 'list';
  readonly data: readonly Item[];
  readonly has_more: boolean;
  /** The value of `after` for the next page; null on the last one. */
  readonly next: string | null;
}

/** Makes a page of items, which include one more than `limit` if there are more. */
export function listPage<Item extends { readonly id: string }>(items: readonly Item[], limit: number): ListPage<Item> {
  const data = items.slice(0, limit);
  const hasMore = items.length > limit;
  return { object: 'list', data, has_more: hasMore, next: hasMore ? (data.at(-1)?.id ?? null) : null };
}

import { type InfiniteData, useInfiniteQuery } from '@tanstack/react-query';
import { queryClient } from './query-client.ts';
import { type Query, request } from './request.ts';

/** One page of a list; `next` is the `after` of the next page. */
interface ListPage<Row> {
  readonly data: readonly Row[];
  readonly has_more: boolean;
  readonly next: string | null;
}

/** A paginated list, as its table uses it. */
export interface List<Row> {
  readonly rows: readonly Row[];
  readonly isLoading: boolean;
  /** Nothing could be loaded. */
  readonly error: Error | null;
  /** Refreshing failed: the rows are from before. */
  readonly refreshError: Error | null;
  readonly hasMore: boolean;
  readonly isLoadingMore: boolean;
  readonly loadMore: () => void;
  readonly retry: () => void;
}

/** Loads a list such as `/keys`, page by page. Its query key is `[path, query]`. */
export function useList<Row>(
  path: string,
  query: Query = {},
  options: { pageSize?: number; refetchInterval?: number } = {},
): List<Row> {
  const { pageSize = 50, refetchInterval: everyMs } = options;
  const answer = useInfiniteQuery({
    queryKey: [path, query],
    queryFn: ({ pageParam, signal }) =>
      request<ListPage<Row>>('GET', path, { query: { ...query, limit: pageSize, after: pageParam }, signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => (page.has_more && page.next !== null ? page.next : undefined),
    // Every loaded page is read again, one after another: a long list as many pages in a time as a short one.
    refetchInterval: ({ state }) => everyMs !== undefined && everyMs * Math.max(1, state.data?.pages.length ?? 1),
  });
  return {
    rows: answer.data?.pages.flatMap((page) => page.data) ?? [],
    isLoading: answer.isPending,
    error: answer.data === undefined ? answer.error : null,
    refreshError: answer.data === undefined ? null : answer.error,
    hasMore: answer.hasNextPage,
    isLoadingMore: answer.isFetchingNextPage,
    loadMore: () => void answer.fetchNextPage(),
    retry: () => void answer.refetch(),
  };
}

/** Shows a changed row in the loaded lists of a path at once: to read a long one again takes a call for every page of it. */
export function replaceRow<Row extends { readonly id: string }>(path: string, row: Row): void {
  queryClient.setQueriesData<InfiniteData<ListPage<Row>>>({ queryKey: [path] }, (list) =>
    list === undefined
      ? undefined
      : {
          ...list,
          pages: list.pages.map((page) => ({ ...page, data: page.data.map((one) => (one.id === row.id ? row : one)) })),
        },
  );
}

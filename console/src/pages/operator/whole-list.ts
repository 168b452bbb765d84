import { useQuery } from '@tanstack/react-query';
import type { List } from '../../api/lists.ts';
import { request } from '../../api/request.ts';

/** An unpaginated list of the operators' JSON, refetched every `everyMs`. */
export function useWholeList<Row>(path: string, everyMs: number): List<Row> {
  const answer = useQuery({
    queryKey: [path],
    queryFn: ({ signal }) => request<{ data: readonly Row[] }>('GET', path, { signal }),
    refetchInterval: everyMs,
    staleTime: 0,
  });
  return {
    rows: answer.data?.data ?? [],
    isLoading: answer.isPending,
    error: answer.data === undefined ? answer.error : null,
    refreshError: answer.data === undefined ? null : answer.error,
    hasMore: false,
    isLoadingMore: false,
    loadMore: () => {},
    retry: () => void answer.refetch(),
  };
}

import { queryOptions } from '@tanstack/react-query';
import { request } from './request.ts';

/** Why a request created no job. */
interface Refusal {
  readonly created_at: number;
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly error: {
    readonly type: string;
    readonly code: string;
    readonly message: string;
    readonly param: string | null;
  };
  readonly key: { readonly id: string; readonly name: string | null } | null;
}

/** The result of a request: its job, or why it was refused. */
export interface FoundRequest {
  readonly id: string;
  /** Null: it had no valid key. */
  readonly account_id: string | null;
  readonly job_id: string | null;
  readonly refusal: Refusal | null;
}

/**
 * A request by its own id, or by that of its job, response or video.
 * @param isOfAll search all accounts, for operators
 */
export function requestQuery(id: string, isOfAll: boolean) {
  const path = isOfAll ? '/admin/v1/requests' : '/requests';
  return queryOptions({
    queryKey: [path, id],
    queryFn: ({ signal }) => request<FoundRequest>('GET', `${path}/${encodeURIComponent(id)}`, { signal }),
    // A refused request can be found a moment later, so a missing one is fetched again.
    staleTime: 0,
  });
}

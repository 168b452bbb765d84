import { queryOptions } from '@tanstack/react-query';
import { request } from './request.ts';

/** Why a request made no job. */
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

/** What became of a request: the job that it made, or why it was refused. */
export interface FoundRequest {
  readonly id: string;
  /** Null: it came without a valid key. */
  readonly account_id: string | null;
  readonly job_id: string | null;
  readonly refusal: Refusal | null;
}

/** A request by its own id, or by that of its job, response or video. @param isOfAll operators look through all accounts */
export function requestQuery(id: string, isOfAll: boolean) {
  const path = isOfAll ? '/admin/v1/requests' : '/requests';
  return queryOptions({
    queryKey: [path, id],
    queryFn: ({ signal }) => request<FoundRequest>('GET', `${path}/${encodeURIComponent(id)}`, { signal }),
    // One that is refused can be found a moment later: what was not found is asked for anew.
    staleTime: 0,
  });
}

import { queryOptions } from '@tanstack/react-query';
import { gatewayNow } from './gateway-clock.ts';
import { request } from './request.ts';

/** A request and its result. Times in ms since 1970, cost in dollars. */
export interface Job {
  readonly id: string;
  readonly object: 'job';
  readonly status: 'queued' | 'in_progress' | 'completed' | 'failed' | 'cancelled';
  readonly account_id: string;
  readonly endpoint: string;
  readonly capability: string;
  readonly model: string;
  /** The fallback model that answered, if another than requested. */
  readonly served_model: string | null;
  readonly vendor: string | null;
  readonly key: { readonly id: string; readonly name: string | null };
  readonly stream: boolean;
  readonly attempts: number;
  readonly created_at: number;
  readonly began_at: number | null;
  readonly first_at: number | null;
  readonly ended_at: number | null;
  readonly error_code: string | null;
  /** Why it failed; null if not stored. */
  readonly error_message: string | null;
  /** The request field at fault. */
  readonly error_param: string | null;
  /** The vendor's HTTP status, if the vendor caused the error. */
  readonly vendor_status: number | null;
  readonly input_tokens: number | null;
  readonly output_tokens: number | null;
  readonly cost: number | null;
  /** The cost reported by its vendor. */
  readonly vendor_cost: number | null;
  readonly usage: unknown;
  /** If it was asked for, or its vendor has used another than the standard one. */
  readonly service_tier: string | null;
  readonly metadata: Readonly<Record<string, string>> | null;
  readonly has_body: boolean;
}

/** Whether the job has ended. */
export function hasEnded(job: Pick<Job, 'ended_at'>): boolean {
  return job.ended_at !== null;
}

/** Time after the end of a job within which its cost is known, if it has one. */
const settlingMs = 10_000;

/** Whether the cost of a job may still come. */
export function isSettling({ cost, ended_at: endedAt }: Pick<Job, 'cost' | 'ended_at'>, now = gatewayNow()): boolean {
  return cost === null && (endedAt === null || now - endedAt < settlingMs);
}

/** Duration of a job from creation to end, in ms; null while in progress. */
export function jobDuration(job: Pick<Job, 'created_at' | 'ended_at'>): number | null {
  return job.ended_at === null ? null : job.ended_at - job.created_at;
}

/** One job, refetched while in progress, and until its cost is known. */
export function jobQuery(id: string, path = '/jobs') {
  return queryOptions({
    queryKey: [path, id],
    queryFn: ({ signal }) => request<Job>('GET', `${path}/${encodeURIComponent(id)}`, { signal }),
    refetchInterval: ({ state }) =>
      state.data !== undefined && (!hasEnded(state.data) || isSettling(state.data)) ? 2000 : false,
  });
}

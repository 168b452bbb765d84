import type { ResponseItem } from '../../../shared/capabilities/response.ts';
import type { ViewedJob } from '../../replies/view.ts';
import type { ResponseViewOptions } from './parse-response.ts';

/** The progress of a response in the form of its object. */
export interface ResponseProgress {
  readonly status: 'queued' | 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled';
  readonly output?: readonly ResponseItem[];
  readonly usage?: Readonly<Record<string, unknown>> | null;
  readonly error?: { readonly code: string; readonly message: string } | null;
  readonly incompleteReason?: string | undefined;
  /** Seconds since 1970. */
  readonly completedAt?: number | undefined;
  /** Further fields of the vendor, such as its service tier. */
  readonly more?: Readonly<Record<string, unknown>>;
}

/** OpenAI's `Response` object of a job. https://platform.openai.com/docs/api-reference/responses/object */
export function responseObject(
  job: ViewedJob<ResponseViewOptions>,
  progress: ResponseProgress,
): Record<string, unknown> {
  const { echo } = job.viewOptions;
  const { incompleteReason: reason } = progress;
  return {
    ...echo,
    ...progress.more,
    id: `resp_${job.id}`,
    object: 'response',
    created_at: Math.floor(job.createdAt / 1000),
    status: progress.status,
    completed_at: progress.status === 'completed' ? (progress.completedAt ?? null) : null,
    error: progress.error ?? null,
    incomplete_details: reason === undefined ? null : { reason },
    model: job.model,
    output: progress.output ?? [],
    usage: progress.usage ?? null,
  };
}

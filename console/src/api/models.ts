import { queryOptions } from '@tanstack/react-query';
import { request } from './request.ts';

/** Dollars for a request, the same for each or by the size of its search context. */
export type RequestPrice = number | { readonly low: number; readonly medium: number; readonly high: number };

/** Dollars per million tokens; `image`, `second`, `character` and `request` are dollars each. */
export interface ModelPrices {
  readonly input?: number | null;
  readonly cached_input?: number | null;
  readonly cache_write?: number | null;
  readonly output?: number | null;
  readonly image_output?: number | null;
  readonly audio_input?: number | null;
  readonly image?: number | null;
  /** Of images that cost otherwise, by size, quality or both. */
  readonly image_kinds?: Readonly<Record<string, number>> | null;
  readonly second?: number | null;
  readonly character?: number | null;
  readonly request?: RequestPrice | null;
  readonly above?: readonly Readonly<Record<string, number | null>>[];
}

export interface Model {
  readonly id: string;
  readonly owned_by: string;
  readonly capability: string;
  /** Who serves it: of a model that can be used those that are on, of another one all. */
  readonly vendors: readonly string[];
  readonly available: boolean;
  readonly context_window: number | null;
  readonly max_output_tokens: number | null;
  readonly input: readonly string[] | null;
  readonly output: readonly string[] | null;
  readonly reasoning: unknown;
  readonly deprecated_at: number | null;
  /** Where requests for it are sent: `/v1/chat/completions`. */
  readonly paths: readonly string[];
  /** Of transcription: whether it tells the time of each part. */
  readonly timestamps: boolean | null;
  readonly prices: ModelPrices | null;
}

export const modelsQuery = queryOptions({
  queryKey: ['/models'],
  queryFn: ({ signal }) => request<{ data: readonly Model[] }>('GET', '/models', { signal }).then(({ data }) => data),
  staleTime: 5 * 60_000,
});

import { queryOptions } from '@tanstack/react-query';
import { type Query, request } from './request.ts';

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

/** A vendor's offer of a model. */
export interface RouteOfModel {
  /** `vendor/model`, by the vendor's name of it. */
  readonly route: string;
  readonly vendor: string;
  readonly on: boolean;
  /** What an operator sets to turn the vendor on; none where only the configuration file can. */
  readonly settings: readonly string[];
  readonly region: string | null;
  readonly context_window: number | null;
  readonly max_output_tokens: number | null;
  readonly prices: ModelPrices | null;
}

/** All that there is to know of one model. */
export interface ModelDetails extends Model {
  /** The model that it is another name of. */
  readonly alias_of: string | null;
  readonly aliases: readonly string[];
  /** Ids of models that serve a request once all its routes have failed. */
  readonly fallbacks: readonly string[];
  readonly routes: readonly RouteOfModel[];
}

function listQuery(query: Query) {
  return queryOptions({
    queryKey: ['/models', query],
    queryFn: ({ signal }) =>
      request<{ data: readonly Model[] }>('GET', '/models', { query, signal }).then(({ data }) => data),
    staleTime: 5 * 60_000,
  });
}

/** The models that can be used now. */
export const modelsQuery = listQuery({ available: true });

/** Every model of the catalogue: a long list. */
export const allModelsQuery = listQuery({});

export function modelQuery(id: string) {
  return queryOptions({
    queryKey: ['/models/', id],
    queryFn: ({ signal }) => request<ModelDetails>('GET', `/models/${encodeURIComponent(id)}`, { signal }),
    staleTime: 60_000,
  });
}

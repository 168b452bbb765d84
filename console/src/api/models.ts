import { queryOptions } from '@tanstack/react-query';
import { type Query, request } from './request.ts';

/** Dollars per request, the same for each or by the size of its search context. */
export type RequestPrice = number | { readonly low: number; readonly medium: number; readonly high: number };

/** Dollars per million tokens; `image`, `second`, `character` and `request` are dollars each. */
export interface ModelPrices {
  readonly input?: number | null;
  readonly cached_input?: number | null;
  readonly cache_write?: number | null;
  readonly output?: number | null;
  readonly image_output?: number | null;
  readonly audio_input?: number | null;
  readonly image_input?: number | null;
  readonly image?: number | null;
  /** For images with a different price, by size, quality or both. */
  readonly image_kinds?: Readonly<Record<string, number>> | null;
  readonly second?: number | null;
  readonly character?: number | null;
  readonly request?: RequestPrice | null;
  readonly above?: readonly Readonly<Record<string, number | null>>[];
  /** At other service tiers than the standard one, by their names. */
  readonly tiers?: Readonly<Record<string, ModelPrices>> | null;
}

export interface Model {
  readonly id: string;
  readonly owned_by: string;
  readonly capability: string;
  /** The vendors that serve it: for an available model the enabled ones, else all. */
  readonly vendors: readonly string[];
  readonly available: boolean;
  readonly context_window: number | null;
  readonly max_output_tokens: number | null;
  readonly input: readonly string[] | null;
  readonly output: readonly string[] | null;
  readonly reasoning: unknown;
  readonly deprecated_at: number | null;
  /** Paths of requests for it: `/v1/chat/completions`. */
  readonly paths: readonly string[];
  /** For transcription: whether it returns timestamps. */
  readonly timestamps: boolean | null;
  readonly prices: ModelPrices | null;
}

/** A vendor's offer of a model. */
export interface RouteOfModel {
  /** `vendor/model`, with the vendor's name of the model. */
  readonly route: string;
  readonly vendor: string;
  readonly on: boolean;
  /** Settings by which an operator enables the vendor; empty if only the configuration file can. */
  readonly settings: readonly string[];
  readonly region: string | null;
  readonly context_window: number | null;
  readonly max_output_tokens: number | null;
  readonly prices: ModelPrices | null;
}

/** All details of one model. */
export interface ModelDetails extends Model {
  /** The model that it is an alias of. */
  readonly alias_of: string | null;
  readonly aliases: readonly string[];
  /** Ids of fallback models, used once all its routes have failed. */
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

/** The models available now. */
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

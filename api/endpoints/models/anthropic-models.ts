import type { Model } from '../../../shared/catalogue/models.ts';
import { invalidParameter } from '../../pipeline/request-fields.ts';

/** A model in Anthropic's shape (https://docs.claude.com/en/api/models). Unknown facts are null. */
export interface AnthropicModel {
  readonly type: 'model';
  readonly id: string;
  readonly display_name: string;
  /** RFC 3339. */
  readonly created_at: string;
  readonly max_input_tokens: number | null;
  readonly max_tokens: number | null;
  /** Deprecated: the day on which its vendor shuts it down is known. */
  readonly lifecycle: 'active' | 'deprecated';
  readonly capabilities: null;
  readonly deprecated_at: null;
  /** RFC 3339. */
  readonly retires_at: string | null;
  readonly line: null;
}

/** One page of models. */
export interface AnthropicModelList {
  readonly data: readonly AnthropicModel[];
  /** Whether there are more in the direction of the paging. */
  readonly has_more: boolean;
  readonly first_id: string | null;
  readonly last_id: string | null;
}

type Query = Readonly<Record<string, string | string[] | undefined>>;

/** Converts a model to Anthropic's shape. */
export function anthropicModel(model: Model): AnthropicModel {
  const { id, created, contextWindow, maxOutputTokens, deprecatedAt } = model;
  return {
    type: 'model',
    id,
    display_name: id,
    created_at: dateOf(created),
    max_input_tokens: contextWindow ?? null,
    max_tokens: maxOutputTokens ?? null,
    lifecycle: lifecycleOf(model),
    capabilities: null,
    deprecated_at: null,
    retires_at: deprecatedAt === undefined ? null : dateOf(deprecatedAt),
    line: null,
  };
}

function lifecycleOf({ deprecatedAt }: Model): AnthropicModel['lifecycle'] {
  return deprecatedAt === undefined ? 'active' : 'deprecated';
}

function dateOf(seconds: number): string {
  return new Date(seconds * 1000).toISOString();
}

/**
 * Returns a page of models, the newest first: `limit` of them (1 to 1000, 20 by default) after `after_id`, or before
 * `before_id`.
 * @throws ApiError 400 that names the parameter.
 */
export function anthropicModelList(models: readonly Model[], query: Query): AnthropicModelList {
  const limit = readLimit(query.limit);
  if (query.after_id !== undefined && query.before_id !== undefined) {
    throw invalidParameter('before_id', "'after_id' and 'before_id' cannot be used together.");
  }
  const wanted = [query.lifecycle, query['lifecycle[]']].flat().filter((state) => state !== undefined);
  const listed = wanted.length === 0 ? [...models] : models.filter((model) => wanted.includes(lifecycleOf(model)));
  const sorted = listed.sort((one, other) => other.created - one.created);
  const start = query.after_id === undefined ? 0 : placeOf(sorted, query.after_id, 'after_id') + 1;
  const end = query.before_id === undefined ? undefined : placeOf(sorted, query.before_id, 'before_id');
  const page = end === undefined ? sorted.slice(start, start + limit) : sorted.slice(Math.max(0, end - limit), end);
  return {
    data: page.map(anthropicModel),
    has_more: end === undefined ? start + limit < sorted.length : end - limit > 0,
    first_id: page[0]?.id ?? null,
    last_id: page.at(-1)?.id ?? null,
  };
}

function readLimit(text: string | string[] | undefined): number {
  if (text === undefined) return 20;
  const limit = /^\d{1,4}$/.test(String(text)) ? Number(text) : 0;
  if (limit >= 1 && limit <= 1000) return limit;
  throw invalidParameter('limit', "Invalid 'limit': expected an integer from 1 to 1000.");
}

function placeOf(models: readonly Model[], id: string | string[], param: string): number {
  const place = models.findIndex((model) => model.id === id);
  if (place >= 0) return place;
  throw invalidParameter(param, `Invalid '${param}': there is no model with this id.`);
}

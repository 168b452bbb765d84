import type { Middleware } from 'koa';
import type { Catalogue } from '../../../shared/catalogue/catalogue.ts';
import type { Model } from '../../../shared/catalogue/models.ts';
import { toDollars } from '../../../shared/money/dollars.ts';
import type { Prices } from '../../../shared/money/prices.ts';
import { readWord } from '../../http/read-query.ts';
import { pathsOf } from '../../pipeline/paths-of-model.ts';
import type { State } from '../../state.ts';

/** What `available` of the list of models can be. */
export const availableOnly = ['true', 'false'] as const;

/**
 * `GET /console/api/models`: every model there is, those that can be used now first, with its limits and prices;
 * `available=true`: only those that can be used.
 */
export function modelList({ catalogue }: { readonly catalogue: Catalogue }): Middleware<State> {
  return (ctx) => {
    ctx.state.endpoint = 'console.models';
    const usable = catalogue.list();
    if (readWord(ctx.query, 'available', availableOnly) === 'true') {
      ctx.body = { data: usable.map((model) => shownModel(model, true)) };
      return;
    }
    const ids = new Set(usable.map(({ id }) => id));
    const others = catalogue.sources().models.filter(({ id }) => !ids.has(id));
    ctx.body = {
      data: [...usable.map((model) => shownModel(model, true)), ...others.map((model) => shownModel(model, false))],
    };
  };
}

/** A model as the console shows it; null is what nobody has said. Vendors of one that can be used are those that are on. */
export function shownModel(model: Model, available: boolean): Record<string, unknown> {
  return {
    ...modelFacts(model),
    vendors: [...new Set(model.routes.map(({ vendor }) => vendor))],
    available,
    paths: pathsOf(model),
    timestamps: model.transcription?.timestamps ?? null,
  };
}

/** What there is to know of a model, but for who serves it. */
export function modelFacts(model: Model): Record<string, unknown> {
  const { contextWindow, maxOutputTokens, deprecatedAt, prices } = model;
  return {
    id: model.id,
    owned_by: model.ownedBy,
    capability: model.capability,
    context_window: contextWindow ?? null,
    max_output_tokens: maxOutputTokens ?? null,
    input: model.input ?? null,
    output: model.output ?? null,
    reasoning: model.reasoning ?? null,
    deprecated_at: deprecatedAt === undefined ? null : deprecatedAt * 1000,
    prices: prices === undefined ? null : shownPrices(prices),
  };
}

/** Dollars: for a million tokens, for an image, a second, a character, a request. */
export function shownPrices(prices: Prices): object {
  const { above, imageOutput, audioInput, image, imageKinds, second, character, request } = prices;
  return {
    ...shownTokenPrices(prices),
    image_output: forMillion(imageOutput),
    audio_input: forMillion(audioInput),
    image: forOne(image),
    image_kinds: imageKinds === undefined ? null : shownKinds(imageKinds),
    second: forOne(second),
    character: forOne(character),
    request: typeof request === 'object' ? shownSizes(request) : forOne(request),
    above: (above ?? []).map(({ tokens, ...longer }) => ({ tokens, ...shownTokenPrices(longer) })),
  };
}

function shownKinds(kinds: NonNullable<Prices['imageKinds']>): object {
  return Object.fromEntries(Object.entries(kinds).map(([kind, price]) => [kind, toDollars(price)]));
}

/** Prices of a request by the size of its search context. */
function shownSizes({ low, medium, high }: Exclude<Prices['request'], number | undefined>): object {
  return { low: toDollars(low), medium: toDollars(medium), high: toDollars(high) };
}

type TokenPrices = Pick<Prices, 'input' | 'cachedInput' | 'cacheWrite' | 'output'>;

function shownTokenPrices({ input, cachedInput, cacheWrite, output }: TokenPrices): object {
  return {
    input: forMillion(input),
    cached_input: forMillion(cachedInput),
    cache_write: forMillion(cacheWrite),
    output: forMillion(output),
  };
}

/** Nano-dollars for a thousand tokens are micro-dollars for a million. */
function forMillion(price: number | undefined): number | null {
  return price === undefined ? null : price / 1_000_000;
}

function forOne(price: number | undefined): number | null {
  return price === undefined ? null : toDollars(price);
}

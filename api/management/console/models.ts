import type { Middleware } from 'koa';
import type { Catalogue } from '../../../shared/catalogue/catalogue.ts';
import type { Model } from '../../../shared/catalogue/models.ts';
import { type Prices, toDollars } from '../../../shared/money/cost.ts';
import { pricesAt } from '../../../shared/money/service-tier.ts';
import { readWord } from '../../http/read-query.ts';
import { pathsOf } from '../../pipeline/paths-of-model.ts';
import type { State } from '../../state.ts';

/** Values of `available` in the list of models. */
export const availableOnly = ['true', 'false'] as const;

/**
 * `GET /console/api/models`: every known model with limits and prices, usable ones first; `available=true`: only usable
 * ones.
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

/** A model as shown in the console; null is unknown. The vendors of a usable model are those that are on. */
export function shownModel(model: Model, available: boolean): Record<string, unknown> {
  return {
    ...modelFacts(model),
    vendors: [...new Set(model.routes.map(({ vendor }) => vendor))],
    available,
    paths: pathsOf(model),
    timestamps: model.transcription?.timestamps ?? null,
  };
}

/** All facts of a model except its vendors. */
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

/** Prices in dollars: per million tokens, image, second, character or request. */
export function shownPrices(prices: Prices): object {
  const { above, imageOutput, audioInput, imageInput, image, imageKinds, second, character, request, tiers } = prices;
  return {
    ...shownTokenPrices(prices),
    image_output: forMillion(imageOutput),
    audio_input: forMillion(audioInput),
    image_input: forMillion(imageInput),
    image: forOne(image),
    image_kinds: imageKinds === undefined ? null : shownKinds(imageKinds),
    second: forOne(second),
    character: forOne(character),
    request: typeof request === 'object' ? shownSizes(request) : forOne(request),
    above: (above ?? []).map(({ tokens, ...longer }) => ({ tokens, ...shownTokenPrices(longer) })),
    tiers: tiers === undefined ? null : shownTiers(prices, Object.keys(tiers)),
  };
}

/** The prices at each service tier; null ones are left out. */
function shownTiers(prices: Prices, tiers: readonly string[]): object {
  return Object.fromEntries(
    tiers.map((tier) => {
      const shown = Object.entries(shownPrices(pricesAt(prices, tier) ?? {}));
      return [tier, Object.fromEntries(shown.filter(([, value]) => value !== null && !isEmptyList(value)))];
    }),
  );
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
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

/** Nano-dollars per thousand tokens are micro-dollars per million. */
function forMillion(price: number | undefined): number | null {
  return price === undefined ? null : price / 1_000_000;
}

function forOne(price: number | undefined): number | null {
  return price === undefined ? null : toDollars(price);
}

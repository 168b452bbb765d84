import type { Model, ModelRoute } from './models.ts';

/** A model's row with the limits and prices of one of its routes instead of its own, which are the first route's. */
export function withFactsOf(route: ModelRoute, model: Model): Model {
  const { contextWindow: _window, maxOutputTokens: _output, prices: _prices, ...rest } = model;
  const { contextWindow, maxOutputTokens, prices } = route;
  return {
    ...rest,
    ...(contextWindow !== undefined && { contextWindow }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(prices && { prices }),
  };
}

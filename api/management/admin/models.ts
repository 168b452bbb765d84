import type { Middleware } from 'koa';
import { type Catalogue, type CatalogueSources, routeName } from '../../../shared/catalogue/catalogue.ts';
import type { Model } from '../../../shared/catalogue/model.ts';
import { withFactsOf } from '../../../shared/catalogue/with-facts-of.ts';
import type { State } from '../../state.ts';
import { modelFacts, shownPrices } from '../console/models.ts';
import { wholeList } from './whole-list.ts';

/** `GET /admin/v1/models`: every model there is, served or not, with all of its routes. Prices are dollars. */
export function listAllModels({ catalogue }: { readonly catalogue: Catalogue }): Middleware<State> {
  return (ctx) => {
    ctx.state.endpoint = 'admin.models';
    const { vendors, models } = catalogue.sources();
    ctx.body = wholeList(models.map((model) => modelView(model, vendors)));
  };
}

function modelView(model: Model, vendors: CatalogueSources['vendors']): Record<string, unknown> {
  const routes = model.routes.map((route, index) => {
    // A row's facts are those of its first route. Later routes have their own, or none.
    const { prices } = index === 0 ? model : withFactsOf(route, model);
    return {
      route: routeName(route),
      vendor: route.vendor,
      model: route.model,
      on: Object.hasOwn(vendors, route.vendor),
      order: route.order ?? null,
      weight: route.weight ?? null,
      region: route.region ?? null,
      prices: prices === undefined ? null : shownPrices(prices),
    };
  });
  return {
    ...modelFacts(model),
    available: routes.some(({ on }) => on),
    fallbacks: model.fallbacks ?? [],
    routes,
  };
}

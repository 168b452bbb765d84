import type { Middleware } from 'koa';
import { type Catalogue, type CatalogueSources, routeName } from '../../../shared/catalogue/catalogue.ts';
import type { Model } from '../../../shared/catalogue/model.ts';
import { withFactsOf } from '../../../shared/catalogue/with-facts-of.ts';
import { settingsToTurnOn } from '../../../shared/config/vendor-settings.ts';
import { ApiError } from '../../../shared/errors.ts';
import { findVendorRow } from '../../../shared/vendors/vendors.ts';
import type { State } from '../../state.ts';
import { modelFacts, shownModel, shownPrices } from './models.ts';

/** `GET /console/api/models/{id}`: one model with its routes, on or off, and its other names; ids may contain slashes. */
export function oneModel({ catalogue }: { readonly catalogue: Catalogue }): Middleware<State> {
  return (ctx) => {
    ctx.state.endpoint = 'console.model';
    const id = ctx.params.id as string;
    const { vendors, models } = catalogue.sources();
    const known = models.find((model) => model.id === id);
    if (known === undefined) throw new ApiError('not_found', 'No such model.');
    const usable = catalogue.list().find((model) => model.id === id);
    ctx.body = {
      ...shownModel(usable ?? known, usable !== undefined),
      ...namesOf(known, models),
      fallbacks: known.fallbacks ?? [],
      routes: known.routes.map((route, index) =>
        routeView(index === 0 ? known : withFactsOf(route, known), route, vendors),
      ),
    };
  };
}

/** The target of an alias, and its further aliases. Hidden models are omitted. */
function namesOf({ id, aliasOf }: Model, models: readonly Model[]): Record<string, unknown> {
  const target = aliasOf ?? id;
  return {
    alias_of: models.some((model) => model.id === aliasOf) ? aliasOf : null,
    aliases: models.filter((model) => model.aliasOf === target && model.id !== id).map((model) => model.id),
  };
}

/** @param facts the model with the limits and prices of the route */
function routeView(
  facts: Model,
  { vendor, model, region }: Model['routes'][number],
  vendors: CatalogueSources['vendors'],
): Record<string, unknown> {
  const { context_window, max_output_tokens } = modelFacts(facts);
  const row = findVendorRow(vendor);
  return {
    route: routeName({ vendor, model }),
    vendor,
    on: Object.hasOwn(vendors, vendor),
    // A vendor of the configuration file has no row.
    settings: row === undefined ? [] : settingsToTurnOn(row),
    region: region ?? null,
    context_window,
    max_output_tokens,
    prices: facts.prices === undefined ? null : shownPrices(facts.prices),
  };
}

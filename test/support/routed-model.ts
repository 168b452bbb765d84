import assert from 'node:assert/strict';
import { createCatalogue, type RoutedModel } from '../../shared/catalogue/catalogue.ts';
import { type Model, models } from '../../shared/catalogue/models.ts';
import { everyVendor, vendorsOn } from './vendor-settings.ts';

// Retired models included: what their traits are good for stays tested.
const described = models.map(({ retired: _retired, ...model }) => model);
const catalogue = createCatalogue({ vendors: everyVendor, models: described });

/** A model of the catalogue, also a retired one, by the first of its routes. */
export function routedModel(id: string): RoutedModel {
  const model = catalogue.find(id);
  assert.ok(model, id);
  const [first] = catalogue.routes(id, model.capability);
  assert.ok(first, id);
  return first;
}

/** A model made up by a test, by the first of its routes. It has one, where the test names none. */
export function madeUpModel(
  fields: Pick<Model, 'id' | 'capability'> & Partial<Model>,
  vendor: string = 'openai',
): RoutedModel {
  const model: Model = { created: 0, ownedBy: 'test', routes: [{ vendor, model: fields.id }], ...fields };
  const vendors = vendorsOn(...model.routes.map((route) => route.vendor));
  const [first] = createCatalogue({ vendors, models: [model] }).routes(model.id, model.capability);
  assert.ok(first, model.id);
  return first;
}

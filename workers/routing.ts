import type { Catalogue } from '../shared/catalogue/catalogue.ts';
import type { Model } from '../shared/catalogue/models.ts';
import { ApiError } from '../shared/errors.ts';
import type { Vendor } from './vendors/vendor.ts';

/** Where a job goes: a vendor, and that vendor's name of the model. */
export interface Route {
  readonly vendor: Vendor;
  readonly model: string;
  /** The model's row in the catalogue. */
  readonly row: Model;
}

/**
 * The route of a model: its first vendor that is on here.
 * @param bound the only vendor that will do, where something of the job's lies there
 * @throws ApiError 503 when this worker knows no vendor for it (its settings differ from the api's).
 */
export function chooseRoute(
  catalogue: Catalogue,
  vendors: ReadonlyMap<string, Vendor>,
  modelId: string,
  bound?: string,
): Route {
  const row = catalogue.find(modelId);
  for (const route of row?.routes ?? []) {
    if (bound !== undefined && route.vendor !== bound) continue;
    const vendor = vendors.get(route.vendor);
    if (row !== undefined && vendor !== undefined) return { vendor, model: route.model, row };
  }
  throw new ApiError('service_unavailable', `No vendor is set up for the model \`${modelId}\`.`);
}

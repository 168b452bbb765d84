import type { Middleware } from 'koa';
import { type Catalogue, type CataloguedVendor, routeName } from '../../../shared/catalogue/catalogue.ts';
import type { Model } from '../../../shared/catalogue/model.ts';
import { settingsToTurnOn } from '../../../shared/config/vendor-settings.ts';
import type { KeyHealth, WorkerReport } from '../../../shared/queue/worker-registry.ts';
import { type VendorRow, vendorRows } from '../../../shared/vendors/vendors.ts';
import type { State } from '../../state.ts';
import { wholeList } from './whole-list.ts';
import { type ReadWorkers, routeView } from './workers.ts';

/** A model's route to a vendor. */
interface VendorRoute {
  readonly model: string;
  readonly route: string;
}

/**
 * `GET /admin/v1/vendors`: every known vendor, on or off, with its routes and its health in each worker. Shows the number of
 * its keys, but nothing of the keys.
 */
export function listVendors(
  { catalogue }: { readonly catalogue: Catalogue },
  readWorkers: ReadWorkers,
): Middleware<State> {
  return async (ctx) => {
    ctx.state.endpoint = 'admin.vendors';
    const workers = await readWorkers();
    const { vendors, models } = catalogue.sources();
    const routes = routesByVendor(models);
    const known = new Map<string, VendorRow>(vendorRows.map((row) => [row.name, row]));
    // Vendors of the configuration file have the row whose wire they speak.
    for (const [name, { row }] of Object.entries(vendors)) if (!known.has(name)) known.set(name, row);
    const data = [...known].map(([name, row]) => ({
      ...settingsView(name, row, Object.hasOwn(vendors, name) ? vendors[name] : undefined),
      routes: routes.get(name) ?? [],
      workers: workers.flatMap((worker) => healthView(name, worker)),
    }));
    ctx.body = wholeList(data);
  };
}

function settingsView(name: string, row: VendorRow, vendor: CataloguedVendor | undefined): Record<string, unknown> {
  const baseUrl = vendor?.baseUrl ?? row.baseUrl;
  // A vendor that needs no key has a stand-in for one.
  const keys = row.needsKey ? (vendor?.apiKeys?.length ?? 0) : 0;
  return {
    name,
    on: vendor !== undefined,
    like: row.name,
    needs_key: row.needsKey,
    settings: settingsToTurnOn(row),
    keys,
    base_url: shown(baseUrl),
  };
}

/** Removes a possible password from an address. */
function shown(baseUrl: string): string {
  const { origin, pathname } = new URL(baseUrl);
  return `${origin}${pathname}`;
}

function routesByVendor(models: readonly Model[]): Map<string, VendorRoute[]> {
  const routes = new Map<string, VendorRoute[]>();
  for (const { id, routes: all } of models) {
    for (const route of all) {
      const of = routes.get(route.vendor) ?? [];
      of.push({ model: id, route: routeName(route) });
      routes.set(route.vendor, of);
    }
  }
  return routes;
}

/** A vendor's health in a worker; empty if the worker does not know it. */
function healthView(name: string, { id, host, keys, routes }: WorkerReport): Record<string, unknown>[] {
  const known = keys.find(({ vendor }) => vendor === name);
  if (known === undefined) return [];
  const own = routes.filter(({ vendor }) => vendor === name);
  return [
    { id, host, keys: known.keys, cooling_keys: known.cooling, ...refusalView(known), routes: own.map(routeView) },
  ];
}

/** The worst state of a vendor's keys, and the vendor's message if it refuses one. */
function refusalView({ cooling, refused, refusal, checked }: KeyHealth): Record<string, unknown> {
  const state = refused > 0 ? 'key_refused' : cooling > 0 ? 'keys_cooling' : 'healthy';
  return { refused_keys: refused, key_state: state, refusal: refusal ?? null, key_check: checked ?? null };
}

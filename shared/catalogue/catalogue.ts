import type { Capability } from '../capabilities/capability.ts';
import { editDistance } from '../config/edit-distance.ts';
import type { VendorSettings } from '../config/vendor-settings.ts';
import type { VendorRow } from '../vendors/vendors.ts';
import { type Model, type ModelRoute, models } from './models.ts';
import { passedThrough } from './passed-through.ts';
import { withFactsOf } from './with-facts-of.ts';

/** Sources of a catalogue: the enabled vendors by name, and every model. */
export interface CatalogueSources {
  readonly vendors: Readonly<Record<string, CataloguedVendor>>;
  readonly models?: readonly Model[];
}

/** An enabled vendor. Its connection settings are shown to operators. */
export type CataloguedVendor = Pick<VendorSettings, 'row' | 'isOpen'> &
  Partial<Pick<VendorSettings, 'apiKeys' | 'baseUrl' | 'unbilled'>>;

/** A model on one of its routes: limits and prices are that route's, and `routes` contains only this one. */
export interface RoutedModel extends Model {
  readonly route: ModelRoute;
  /** The row of the vendor, or of the one whose wire format it uses. */
  readonly vendorRow: VendorRow;
}

/** The models that the enabled vendors can serve. */
export interface Catalogue {
  /** Every model, in the order of the table. */
  list(): readonly Model[];
  /** Finds a model by its id. An unlisted one is found as `vendor/model` if the vendor is open, as a model of the requested capability. */
  find(id: string, capability?: Capability): Model | undefined;
  /** All routes that may serve a model, in the order to be tried; those of fallback models come last. */
  routes(id: string, capability: Capability): readonly RoutedModel[];
  /** Up to three ids similar to this unknown one, nearest first. */
  nearest(id: string): string[];
  /** Finds a retired model by its id: its vendor has shut it down, so that all else returns it only at other vendors, if it has any. */
  retired(id: string): Model | undefined;
  /** The current sources, including models that no vendor serves. */
  sources(): Required<CatalogueSources>;
  /** Replaces the vendors and models. */
  replace(sources: CatalogueSources): void;
}

/** The catalogue for a set of vendors: it contains a model if one of its routes leads to an enabled vendor, and only those routes. */
export function createCatalogue(sources: CatalogueSources): Catalogue {
  let tables = createTables(sources);
  const find = (id: string, capability?: Capability): Model | undefined =>
    tables.byId.get(id) ?? (capability && passedThrough(id, capability, tables.vendors, tables.served));
  return {
    list: () => tables.served,
    find,
    routes: (id, capability) => {
      const known = tables.routesById.get(id);
      if (known !== undefined) return known;
      const model = find(id, capability);
      if (model === undefined) return [];
      const routes = routesOf(model, tables);
      // Unlisted ids come from callers: caching them would fill the memory.
      if (tables.byId.has(id)) tables.routesById.set(id, routes);
      return routes;
    },
    retired: (id) => tables.retired.get(id),
    nearest: (id) => nearestIds(id, tables.names),
    sources: () => ({ vendors: tables.vendors, models: tables.models }),
    replace: (others) => {
      tables = createTables(others);
    },
  };
}

interface Tables {
  readonly vendors: CatalogueSources['vendors'];
  readonly models: readonly Model[];
  readonly retired: ReadonlyMap<string, Model>;
  readonly served: readonly Model[];
  readonly byId: ReadonlyMap<string, Model>;
  readonly names: readonly (Names & { readonly id: string })[];
  /** Filled lazily. */
  readonly routesById: Map<string, readonly RoutedModel[]>;
}

function createTables({ vendors, models: table = models }: CatalogueSources): Tables {
  const current = table.flatMap(stillOffered);
  const served = current.flatMap((model) => servedBy(vendors, model));
  return {
    vendors,
    models: current,
    retired: new Map(table.flatMap((model) => (model.retired === true ? [[model.id, model]] : []))),
    served,
    byId: new Map(served.map((model) => [model.id, model])),
    names: served.map(({ id }) => ({ id, ...namesOf(id) })),
    routesById: new Map(),
  };
}

/** The row; of a retired model the one at other vendors than its own, whose shutdown says nothing of theirs; an empty list without any. */
export function stillOffered(model: Model): Model[] {
  if (model.retired !== true) return [model];
  const own = model.routes[0]?.vendor;
  const routes = model.routes.filter(({ vendor }) => vendor !== own);
  const [first] = routes;
  if (first === undefined) return [];
  const { retired: _retired, deprecatedAt: _deprecatedAt, replacement: _replacement, ...row } = model;
  return [{ ...withFactsOf(first, row), routes }];
}

/** The row with its enabled routes; an empty list without any. */
function servedBy(vendors: CatalogueSources['vendors'], model: Model): Model[] {
  const routes = model.routes.filter(({ vendor }) => Object.hasOwn(vendors, vendor));
  const [first] = routes;
  if (first === undefined) return [];
  if (first === model.routes[0]) return [{ ...model, routes }];
  // A row's limits and prices are those of its first route.
  return [{ ...withFactsOf(first, model), routes }];
}

function routesOf(model: Model, { vendors, byId }: Tables): RoutedModel[] {
  const standIns = (model.fallbacks ?? []).flatMap((id) => byId.get(id) ?? []);
  return [model, ...standIns.filter(({ capability }) => capability === model.capability)].flatMap((candidate) =>
    candidate.routes
      .map((route, index) => ({ route, order: route.order ?? index, isFirst: index === 0 }))
      .sort((a, b) => a.order - b.order)
      .map(({ route, isFirst }) => ({
        ...(isFirst ? candidate : withFactsOf(route, candidate)),
        ...{ routes: [route], route, vendorRow: (vendors[route.vendor] as VendorSettings).row },
      })),
  );
}

/** Longer ids are not compared, as the cost of a comparison grows with the product of the lengths. */
const comparedLength = 64;

/** A name as a whole, and its last part: callers of other gateways put the vendor first (openai/gpt-4o), or omit it. */
interface Names {
  readonly whole: string;
  readonly bare: string;
}

function namesOf(id: string): Names {
  const whole = id.toLowerCase();
  return { whole, bare: whole.slice(whole.lastIndexOf('/') + 1) };
}

function nearestIds(id: string, known: readonly (Names & { readonly id: string })[]): string[] {
  if (id.length > comparedLength) return [];
  const { whole, bare } = namesOf(id);
  // Part of a short name must match, or every other short name would be near.
  const maxDistance = Math.min(bare.length - 1, Math.max(2, Math.floor(bare.length / 4)));
  return known
    .map((candidate) => ({
      id: candidate.id,
      distance: editDistance(bare, candidate.bare, maxDistance),
      // Among equal names, the one with the same vendor prefix comes first.
      whole: whole === candidate.whole ? 0 : 1,
    }))
    .filter(({ distance }) => distance <= maxDistance)
    .sort((a, b) => a.distance - b.distance || a.whole - b.whole)
    .slice(0, 3)
    .map(({ id }) => id);
}

/** A route's name in settings, metrics and logs: `vendor/model`, with the vendor's name of the model. */
export function routeName({ vendor, model }: Pick<ModelRoute, 'vendor' | 'model'>): string {
  return `${vendor}/${model}`;
}

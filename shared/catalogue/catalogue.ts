import { type Model, models } from './models.ts';

/** The models that can be served with the vendors that are on. */
export interface Catalogue {
  /** Every model, in the order of the table. */
  list(): readonly Model[];
  find(id: string): Model | undefined;
  /** Up to three ids that look like this unknown one, the nearest first. */
  nearest(id: string): string[];
}

/**
 * The catalogue for a set of vendors: a model is in it when one of its routes leads to a vendor that is on, and it shows
 * those routes only.
 */
export function createCatalogue(vendorsOn: ReadonlySet<string>, table: readonly Model[] = models): Catalogue {
  const served = table.flatMap((model) => servedBy(vendorsOn, model));
  const byId = new Map(served.map((model) => [model.id, model]));
  const names = served.map(({ id }) => ({ id, ...namesOf(id) }));
  return {
    list: () => served,
    find: (id) => byId.get(id),
    nearest: (id) => nearestIds(id, names),
  };
}

/** The row with the routes that are on; none where there are none. */
function servedBy(vendorsOn: ReadonlySet<string>, model: Model): Model[] {
  const routes = model.routes.filter(({ vendor }) => vendorsOn.has(vendor));
  const [first] = routes;
  if (first === undefined) return [];
  if (first === model.routes[0]) return [{ ...model, routes }];
  // A row's limits and prices are those of its first route.
  const { contextWindow: _window, maxOutputTokens: _output, prices: _prices, ...rest } = model;
  const { vendor: _vendor, model: _model, ...facts } = first;
  return [{ ...rest, ...facts, routes }];
}

/** No id is longer than this where it matters, and the cost of a comparison grows with the product of the lengths. */
const comparedLength = 64;

/** A name as a whole, and its last part: callers of other gateways put the vendor first (openai/gpt-4o), or leave it out. */
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
  // Something of a short name must be left, or every other short name is near.
  const furthest = Math.min(bare.length - 1, Math.max(2, Math.floor(bare.length / 4)));
  return known
    .map((candidate) => ({
      id: candidate.id,
      distance: distance(bare, candidate.bare, furthest),
      // Among names alike, the one with the same vendor before it.
      whole: whole === candidate.whole ? 0 : 1,
    }))
    .filter(({ distance }) => distance <= furthest)
    .sort((a, b) => a.distance - b.distance || a.whole - b.whole)
    .slice(0, 3)
    .map(({ id }) => id);
}

/** The edit distance (Levenshtein) of two texts, or `furthest + 1` for any that is larger. */
function distance(a: string, b: string, furthest: number): number {
  if (Math.abs(a.length - b.length) > furthest) return furthest + 1;
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const substituted = (previous[column - 1] as number) + (a[row - 1] === b[column - 1] ? 0 : 1);
      current.push(Math.min(substituted, (previous[column] as number) + 1, (current[column - 1] as number) + 1));
    }
    if (Math.min(...current) > furthest) return furthest + 1;
    previous = current;
  }
  return previous[b.length] as number;
}

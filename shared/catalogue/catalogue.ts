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
  const served = table
    .map((model) => ({ ...model, routes: model.routes.filter(({ vendor }) => vendorsOn.has(vendor)) }))
    .filter((model) => model.routes.length > 0);
  const byId = new Map(served.map((model) => [model.id, model]));
  return {
    list: () => served,
    find: (id) => byId.get(id),
    nearest: (id) => nearestIds(id, [...byId.keys()]),
  };
}

/** No id is longer than this where it matters, and the cost of a comparison grows with the product of the lengths. */
const comparedLength = 64;

function nearestIds(id: string, known: readonly string[]): string[] {
  const wanted = id.toLowerCase();
  if (wanted.length > comparedLength) return [];
  // Callers of other gateways put the vendor first: openai/gpt-4o.
  const bare = wanted.slice(wanted.lastIndexOf('/') + 1);
  // Something of a short name must be left, or every other short name is near.
  const furthest = Math.min(bare.length - 1, Math.max(2, Math.floor(bare.length / 4)));
  return known
    .map((candidate) => ({
      candidate,
      distance: Math.min(distance(wanted, candidate, furthest), distance(bare, candidate, furthest)),
    }))
    .filter(({ distance }) => distance <= furthest)
    .sort((a, b) => a.distance - b.distance)
    .slice(0, 3)
    .map(({ candidate }) => candidate);
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

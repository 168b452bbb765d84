import { type Catalogue, routeName } from '../../shared/catalogue/catalogue.ts';

/** Names of the routes of each model, in the order to be tried, by the model's id. */
export function routesByModel(catalogue: Pick<Catalogue, 'list' | 'routes'>): ReadonlyMap<string, readonly string[]> {
  return new Map(
    catalogue
      .list()
      .map(({ id, capability }) => [id, catalogue.routes(id, capability).map(({ route }) => routeName(route))]),
  );
}

/** The former routes of models that have others after a reload, or none: what waits for one of them may go elsewhere, or fail at once. */
export function changedRoutes(
  before: ReturnType<typeof routesByModel>,
  now: ReturnType<typeof routesByModel>,
): ReadonlySet<string> {
  const changed = [...before].filter(([id, routes]) => routes.join('\n') !== now.get(id)?.join('\n'));
  return new Set(changed.flatMap(([, routes]) => routes));
}

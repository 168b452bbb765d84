import { type RoutedModel, routeName } from '../../shared/catalogue/catalogue.ts';
import type { Draw } from '../../shared/runtime/rendezvous.ts';

/**
 * Routes in the order in which they are tried: as listed, but those of one model and one order are drawn by their weights, the
 * ones in this process's own region first.
 * @param draw a number from 0 to 1 for the name of a route
 */
export function orderRoutes(
  routes: readonly RoutedModel[],
  region: string | undefined,
  draw: Draw = Math.random,
): readonly RoutedModel[] {
  const ordered: RoutedModel[] = [];
  for (let start = 0; start < routes.length; ) {
    let end = start + 1;
    while (end < routes.length && areAlike(routes[start], routes[end])) end++;
    ordered.push(...drawn(routes.slice(start, end), region, draw));
    start = end;
  }
  return ordered;
}

/** Whether two neighbours share an order. Without an explicit order, each route is a group by itself. */
function areAlike(one: RoutedModel | undefined, other: RoutedModel | undefined): boolean {
  return one?.id === other?.id && one?.route.order !== undefined && one.route.order === other?.route.order;
}

/** Weighted drawing without replacement: by the largest of `random ** (1 / weight)` (Efraimidis and Spirakis, 2006). */
function drawn(routes: RoutedModel[], region: string | undefined, draw: Draw): RoutedModel[] {
  if (routes.length < 2) return routes;
  return routes
    .map((routed) => ({
      routed,
      distance: region === undefined || routed.route.region === region ? 0 : 1,
      drawn: draw(routeName(routed.route)) ** (1 / (routed.route.weight ?? 1)),
    }))
    .sort((a, b) => a.distance - b.distance || b.drawn - a.drawn)
    .map(({ routed }) => routed);
}

import { type Catalogue, type RoutedModel, routeName } from '../../shared/catalogue/catalogue.ts';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import { type Hold, holdOf } from '../../shared/money/hold.ts';
import { requestFacts } from './request-facts.ts';
import type { Submission } from './submission.ts';

/**
 * The maximum cost of a job, over all routes that may serve it. Unknown if a route has no price, or would request an extra
 * from its vendor that no price covers.
 */
export function maximumCost(
  { catalogue }: { readonly catalogue: Catalogue },
  { job, parsed }: { readonly job: Pick<JobIdentity, 'model' | 'capability'> } & Pick<Submission, 'parsed'>,
): Hold | 'unpriced' {
  const { excludedRoutes = [] } = parsed ?? {};
  const all = catalogue.routes(job.model, job.capability);
  const remaining = all.filter(({ route }) => !excludedRoutes.includes(routeName(route)));
  // The catalogue's own list, of nearly every request, has its highest prices cached.
  const routes = remaining.length === all.length ? all : remaining;
  if (parsed?.unpriced !== undefined || !arePriced(routes)) return 'unpriced';
  const usualSeconds = Math.max(0, ...routes.map(({ video }) => Number(video?.seconds[0] ?? 0)));
  return holdOf(routes, {
    seconds: usualSeconds,
    ...(parsed ? requestFacts(parsed) : { bytes: 0 }),
  });
}

/** Whether each route that may serve it has a price: on another one everything would be free. */
function arePriced(routes: readonly RoutedModel[]): boolean {
  const hasPrice = ({ prices = {} }: RoutedModel): boolean =>
    Object.entries(prices).some(([name, price]) => name !== 'tiers' && price !== undefined);
  return routes.length > 0 && routes.every(hasPrice);
}

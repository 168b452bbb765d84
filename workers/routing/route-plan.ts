import type { RoutedModel } from '../../shared/catalogue/catalogue.ts';
import { routeName } from '../../shared/catalogue/route-name.ts';
import type { RoutingSettings } from '../../shared/config/routing-settings.ts';
import { ApiError } from '../../shared/errors.ts';
import type { Failure } from './failure.ts';
import type { RouteBreakers } from './route-breakers.ts';
import type { RouteTarget } from './route-target.ts';
import type { VendorPool } from './vendor-pool.ts';

/** The pause before a route is retried if its vendor requests none: it doubles, and is drawn from its upper half. */
const firstPauseMs = 250;
const maxPauseMs = 4000;

/** The next call, and the wait before it. */
export interface NextCall {
  readonly target: RouteTarget;
  readonly waitMs: number;
}

interface PlannedRoute {
  readonly name: string;
  readonly routed: RoutedModel;
  /** Ids of the accounts that were limited or refused. */
  readonly refused: string[];
  failure: Failure | undefined;
  /** Until when its vendor asked not to be called, in ms since 1970. */
  waitsUntil: number;
}

/** Decides which route of a job comes next. */
export class RoutePlan {
  readonly #routes: readonly PlannedRoute[];
  readonly #breakers: RouteBreakers;
  readonly #pool: VendorPool;
  readonly #settings: RoutingSettings;
  readonly #account: string | undefined;

  /** @param account the only eligible one; undefined: any */
  constructor(
    routes: readonly RoutedModel[],
    breakers: RouteBreakers,
    pool: VendorPool,
    settings: RoutingSettings,
    account?: string,
  ) {
    this.#routes = routes.map(plannedRoute);
    this.#breakers = breakers;
    this.#pool = pool;
    this.#settings = settings;
    this.#account = account;
  }

  /**
   * The first call: the first healthy route with a key that is not cooling down. If there is none, the first route that is not
   * dead.
   * @throws ApiError 503 if all are dead.
   */
  first(): NextCall {
    const admitted = this.#routes.filter((route) => this.#breakers.admits(route.name));
    const route =
      admitted.find((planned) => this.#isWarm(planned)) ??
      admitted[0] ??
      this.#routes.find(({ name }) => !this.#breakers.isDead(name));
    if (route === undefined) throw this.#unavailable();
    return { target: this.#target(route), waitMs: 0 };
  }

  /** The call after a failed one; undefined if nothing more can be tried. */
  after({ routed, account }: RouteTarget, failure: Failure, calls: number): NextCall | undefined {
    const failed = this.#routes.find((route) => route.routed === routed) as PlannedRoute;
    if (failure.reason === 'key' || failure.reason === 'limit') failed.refused.push(account.id);
    failed.failure = failure;
    failed.waitsUntil = Date.now() + (failure.error.retryAfterMs ?? 0);
    return this.#withAnotherKey(failed) ?? this.#elsewhere() ?? this.#again(calls);
  }

  /** Another key may not have the limit or refusal of this one. */
  #withAnotherKey(route: PlannedRoute): NextCall | undefined {
    const { reason } = route.failure ?? {};
    const { vendor, model } = route.routed.route;
    if (this.#account !== undefined || (reason !== 'key' && reason !== 'limit')) return undefined;
    const account = this.#pool.pickOther(vendor, model, route.refused);
    if (account === undefined) return undefined;
    return { target: { routed: route.routed, account }, waitMs: 0 };
  }

  /** A route that was not called yet, without a wait. */
  #elsewhere(): NextCall | undefined {
    const fresh = this.#routes.filter(({ failure, name }) => failure === undefined && this.#breakers.admits(name));
    const route = fresh.find((planned) => this.#isWarm(planned)) ?? fresh[0];
    return route && { target: this.#target(route), waitMs: 0 };
  }

  /** The route that may be called again the soonest. */
  #again(calls: number): NextCall | undefined {
    const now = Date.now();
    const latest = now + this.#settings.maxRetryAfterMs;
    const candidates = this.#routes.filter(
      ({ failure, waitsUntil, name }) => failure?.sameRoute && waitsUntil <= latest && this.#breakers.admits(name),
    );
    const [first, ...others] = candidates;
    if (first === undefined) return undefined;
    const route = others.reduce((best, each) => (each.waitsUntil < best.waitsUntil ? each : best), first);
    const doubled = Math.min(maxPauseMs, firstPauseMs * 2 ** (calls - 1));
    const waitMs = Math.max(route.waitsUntil - now, (doubled / 2) * (1 + Math.random()));
    return { target: this.#target(route), waitMs };
  }

  #isWarm({ routed: { route } }: PlannedRoute): boolean {
    return this.#pool.isWarm(route.vendor, route.model);
  }

  #target({ routed }: PlannedRoute): RouteTarget {
    const { vendor, model } = routed.route;
    const account =
      this.#account === undefined ? this.#pool.pick(vendor, model) : this.#pool.find(vendor, this.#account);
    if (account === undefined) throw this.#unavailable();
    return { routed, account };
  }

  #unavailable(): ApiError {
    if (this.#routes.length === 0) {
      return new ApiError('service_unavailable', 'No vendor is set up for this model.');
    }
    const pauses = this.#routes.map(({ name }) => this.#breakers.pauseMs(name));
    return new ApiError(
      'service_unavailable',
      'The model is not available at the moment: its vendors do not respond.',
      {
        retryAfterMs: Math.max(1000, Math.min(...pauses)),
      },
    );
  }
}

function plannedRoute(routed: RoutedModel): PlannedRoute {
  return { name: routeName(routed.route), routed, refused: [], failure: undefined, waitsUntil: 0 };
}

import {
  BrokenCircuitError,
  type CircuitBreakerPolicy,
  CircuitState,
  CountBreaker,
  circuitBreaker,
  handleWhen,
} from 'cockatiel';
import type { RoutingSettings } from '../../shared/config/routing-settings.ts';
import { ApiError } from '../../shared/errors.ts';
import type { RouteHealth } from '../../shared/queue/worker-registry.ts';
import { isCallersFault, isCancelled, isRouteFailure } from './failure.ts';

/** Routes whose health is remembered: ids that pass through are the callers'. */
const maxRoutes = 5000;

/** Routes that operators are shown of one worker, and how long a failure counts among them, in ms. */
const maxShown = 100;
const shownErrorMs = 3_600_000;

/** How a route fares. */
export type RouteState = RouteHealth['state'];

const badness: Readonly<Record<RouteState, number>> = { closed: 0, 'half-open': 1, open: 2 };

interface Health {
  readonly breaker: CircuitBreakerPolicy;
  /** Those that the breaker was made with. */
  readonly settings: RoutingSettings;
  /** When the route was found not to be well, or was last tried since, in ms since 1970. */
  pausedAt: number;
  /** Calls that have failed one after the other. */
  failedInARow: number;
  lastError: RouteHealth['lastError'];
}

const fresh = { pausedAt: 0, failedInARow: 0, lastError: undefined };

/** A circuit breaker for each route: one that fails too often is left alone for a while, then tried with one call. */
export class RouteBreakers {
  readonly #settings: () => RoutingSettings;
  readonly #onChange: (route: string, state: RouteState | undefined) => void;
  readonly #routes = new Map<string, Health>();

  /** @param onChange told of each change; undefined: the route's health is forgotten */
  constructor(settings: () => RoutingSettings, onChange: (route: string, state: RouteState | undefined) => void) {
    this.#settings = settings;
    this.#onChange = onChange;
  }

  /**
   * Whether the route may be called now: it is well, or its pause is over and nobody else is trying it. A call that tries it
   * keeps others away for a further pause at most, as its answer may be a long one.
   */
  admits(route: string): boolean {
    return this.pauseMs(route) === 0;
  }

  /** How long the route is still left alone, in ms. */
  pauseMs(route: string): number {
    const health = this.#routes.get(route);
    if (health === undefined || health.breaker.state === CircuitState.Closed) return 0;
    return Math.max(0, health.pausedAt + health.settings.breakerPauseMs - Date.now());
  }

  /**
   * Whether the route has failed so often in a row that it must be taken for dead. One that is merely not well is still
   * better than none.
   */
  isDead(route: string): boolean {
    return (this.#routes.get(route)?.failedInARow ?? 0) >= this.#settings().breakerCalls;
  }

  /** Calls a route and remembers how that went, whatever its breaker thinks of it. */
  async call<T>(route: string, work: () => Promise<T>): Promise<T> {
    const health = this.#healthOf(route);
    try {
      const result = await this.#execute(route, health, work);
      health.failedInARow = 0;
      return result;
    } catch (error) {
      if (isRouteFailure(error)) health.failedInARow++;
      else if (!isCancelled(error)) health.failedInARow = 0;
      if (error instanceof ApiError && !isCancelled(error) && !isCallersFault(error)) {
        health.lastError = { code: error.code, status: error.vendorStatus, at: Date.now() };
      }
      throw error;
    }
  }

  /** Routes that are not well, or whose last failure is not long ago: the worst first, and not more than operators can read. */
  health(): RouteHealth[] {
    const since = Date.now() - shownErrorMs;
    const shown: RouteHealth[] = [];
    for (const [route, { breaker, failedInARow, lastError }] of this.#routes) {
      const state = stateNames[breaker.state] ?? 'open';
      if (state === 'closed' && (lastError?.at ?? 0) < since) continue;
      shown.push({ route, vendor: route.slice(0, route.indexOf('/')), state, failedInARow, lastError });
    }
    return shown
      .sort((a, b) => badness[b.state] - badness[a.state] || (b.lastError?.at ?? 0) - (a.lastError?.at ?? 0))
      .slice(0, maxShown);
  }

  async #execute<T>(route: string, health: Health, work: () => Promise<T>): Promise<T> {
    // The breaker itself would have this call wait for the one that tries the route.
    if (health.breaker.state === CircuitState.HalfOpen) return await this.#callBeside(route, health, work);
    try {
      return await health.breaker.execute(work);
    } catch (error) {
      // Called all the same, as there was no other route.
      if (error instanceof BrokenCircuitError) return await work();
      throw error;
    }
  }

  /** A call while another one tries the route. Where that one takes long, this one tries it, too. */
  async #callBeside<T>(route: string, health: Health, work: () => Promise<T>): Promise<T> {
    if (this.pauseMs(route) > 0) return await work();
    health.pausedAt = Date.now();
    const result = await work();
    if (this.#routes.get(route) === health) {
      this.#routes.delete(route);
      this.#onChange(route, 'closed');
    }
    return result;
  }

  /** Forgets the oldest of the routes that are well; where none is, the oldest. */
  #forgetOne(): void {
    let [forgotten] = this.#routes.keys();
    for (const [route, { breaker }] of this.#routes) {
      if (breaker.state !== CircuitState.Closed) continue;
      forgotten = route;
      break;
    }
    if (forgotten === undefined) return;
    this.#routes.delete(forgotten);
    this.#onChange(forgotten, undefined);
  }

  #healthOf(route: string): Health {
    const known = this.#routes.get(route);
    const settings = this.#settings();
    if (known?.settings === settings) return known;
    if (known === undefined && this.#routes.size >= maxRoutes) this.#forgetOne();
    const health: Health = { ...fresh, breaker: createBreaker(settings), settings };
    health.breaker.onStateChange((state) => {
      // A call that goes on for long may end after its route was forgotten.
      if (this.#routes.get(route) !== health) return;
      health.pausedAt = Date.now();
      this.#onChange(route, stateNames[state] ?? 'open');
    });
    this.#routes.set(route, health);
    if (known !== undefined) this.#onChange(route, undefined);
    return health;
  }
}

function createBreaker({
  breakerThreshold,
  breakerCalls: size,
  breakerPauseMs,
}: RoutingSettings): CircuitBreakerPolicy {
  // The library wants less than all of them: this is crossed only when all have failed.
  const threshold = Math.min(breakerThreshold, 1 - 1 / (2 * size));
  const counts = new CountBreaker({ threshold, size, minimumNumberOfCalls: Math.ceil(size / 2) });
  const breaker: CircuitBreakerPolicy = circuitBreaker(
    // Where the call that tries a route is cancelled nothing is known: what is no failure would count as a success.
    handleWhen((error) => isRouteFailure(error) || (breaker.state === CircuitState.HalfOpen && isCancelled(error))),
    { breaker: counts, halfOpenAfter: breakerPauseMs },
  );
  return breaker;
}

const stateNames: Partial<Record<CircuitState, RouteState>> = {
  [CircuitState.Closed]: 'closed',
  [CircuitState.HalfOpen]: 'half-open',
  [CircuitState.Open]: 'open',
};

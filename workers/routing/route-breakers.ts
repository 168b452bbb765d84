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
import { failingAlone, type RecentCall } from './failing-alone.ts';
import { isAnswer, isCallersFault, isCancelled, isRouteFailure } from './failure.ts';

/** Routes whose health is remembered: passed-through ids come from callers. */
const maxRoutes = 5000;

/** Maximum number of routes of one worker shown to operators, and how long a failure counts among them, in ms. */
const maxShown = 100;
const shownErrorMs = 3_600_000;

/** Health of a route. */
export type RouteState = RouteHealth['state'];

const badness: Readonly<Record<RouteState, number>> = { closed: 0, 'half-open': 1, open: 2 };

interface Health {
  readonly breaker: CircuitBreakerPolicy;
  /** Settings that the breaker was created with. */
  readonly settings: RoutingSettings;
  /** When the route became unhealthy or was last probed since, in ms since 1970. */
  pausedAt: number;
  /** Consecutive failed calls. */
  failedInARow: number;
  /** The account whose jobs they were; null: of several. After a failed probe it is the probe's. */
  failedOf: string | null;
  /** The latest calls, as many as the breaker counts, since it was last closed or probed. */
  readonly recent: RecentCall[];
  /** The account that alone must not call it while it is paused, as the calls of others do not fail as often; null: nobody must. */
  pausedFor: string | null;
  /** Calls since `minuteAt`, in ms since 1970, and in the minute before. */
  calls: number;
  callsBefore: number;
  minuteAt: number;
  lastError: RouteHealth['lastError'];
}

const fresh = {
  pausedAt: 0,
  failedInARow: 0,
  failedOf: null,
  pausedFor: null,
  calls: 0,
  callsBefore: 0,
  minuteAt: 0,
  lastError: undefined,
};
const minuteMs = 60_000;

/**
 * Told of each change of a route's health; undefined: it is forgotten.
 * @param owner the account that the route is paused for, or was; null: all
 */
export type RouteListener = (route: string, state: RouteState | undefined, owner: string | null) => void;

/** Routes, and routes of single accounts, that another worker has paused: by `pauseName`. */
export type Pauses = ReadonlyMap<string, number>;

/** The name of a route's pause for one account, or for all. */
export function pauseName(route: string, owner: string | null): string {
  return owner === null ? route : `${owner} ${route}`;
}

/** A circuit breaker for each route: one that fails too often is paused, then probed with one call. */
export class RouteBreakers {
  readonly #settings: () => RoutingSettings;
  readonly #onChange: RouteListener;
  readonly #routes = new Map<string, Health>();
  /** What other workers have paused, and until when, in ms since 1970. */
  #pausedElsewhere: Pauses = new Map();

  constructor(settings: () => RoutingSettings, onChange: RouteListener) {
    this.#settings = settings;
    this.#onChange = onChange;
  }

  /**
   * Whether the route may be called for an account now: it is healthy, or only for another one it is not, or its pause is over and no
   * other call is probing it. A probe blocks others for at most another pause, as its answer may be a long one.
   */
  admits(route: string, owner: string): boolean {
    return this.pauseMs(route, owner) === 0;
  }

  /** How long the route remains paused for an account, in ms. */
  pauseMs(route: string, owner: string): number {
    const health = this.#routes.get(route);
    if (health === undefined || health.breaker.state === CircuitState.Closed) return this.#elsewhereMs(route, owner);
    return health.pausedFor === null || health.pausedFor === owner ? pauseLeft(health) : 0;
  }

  /**
   * Whether the route counts as dead for an account after that many consecutive failures. A route that is merely unhealthy is still
   * better than none. Failures of one account alone may be due to its requests: others find out with a call of their own.
   */
  isDead(route: string, owner: string): boolean {
    const health = this.#routes.get(route);
    if (health === undefined || health.failedInARow < this.#settings().breakerCalls) return false;
    return health.failedOf === null || health.failedOf === owner;
  }

  /** Notes what other workers have paused, with ms: nothing else is. */
  pauseElsewhere(pauses: Pauses): void {
    const now = Date.now();
    this.#pausedElsewhere = new Map([...pauses].map(([name, ms]) => [name, now + ms]));
  }

  /** Calls a route for an account and records the outcome, whatever the state of its breaker. */
  async call<T>(route: string, owner: string, work: () => Promise<T>): Promise<T> {
    const health = this.#healthOf(route);
    startMinute(health);
    health.calls++;
    const isProbe = health.breaker.state !== CircuitState.Closed && pauseLeft(health) === 0;
    // Noted before the breaker sees the outcome, so that it is known for whom it opens.
    return await this.#execute(route, health, async () => {
      try {
        const result = await work();
        note(health, { owner, hasFailed: false }, isProbe);
        return result;
      } catch (error) {
        if (isRouteFailure(error)) this.#noteFailure(route, health, owner, isProbe);
        else if (isAnswer(error)) note(health, { owner, hasFailed: false }, isProbe);
        if (error instanceof ApiError && !isCancelled(error) && !isCallersFault(error)) {
          health.lastError = { code: error.code, status: error.vendorStatus, at: Date.now() };
        }
        throw error;
      }
    });
  }

  #noteFailure(route: string, health: Health, owner: string, isProbe: boolean): void {
    note(health, { owner, hasFailed: true }, isProbe);
    const before = health.pausedFor;
    health.pausedFor = failingAlone(health.recent, health.settings.breakerThreshold);
    const isPaused = health.breaker.state === CircuitState.Open && this.#routes.get(route) === health;
    if (isPaused && before !== null && health.pausedFor === null) this.#onChange(route, 'open', null);
  }

  /** Calls a minute: of the last minute, or since the first one if that is less. */
  callsPerMinute(route: string): number {
    const health = this.#routes.get(route);
    if (health === undefined) return 0;
    startMinute(health);
    const { calls, callsBefore } = health;
    const sinceMs = Date.now() - health.minuteAt;
    // Those of the minute before count by how much of it is in the last minute.
    if (callsBefore > 0) return calls + callsBefore * (1 - sinceMs / minuteMs);
    return (calls * minuteMs) / Math.max(1000, sinceMs);
  }

  /** Routes that are unhealthy, or have failed recently: the worst first, at most as many as operators can read. */
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

  #elsewhereMs(route: string, owner: string): number {
    if (this.#pausedElsewhere.size === 0) return 0;
    const [ofAll = 0, ofOwner = 0] = [null, owner].map((each) => this.#pausedElsewhere.get(pauseName(route, each)));
    return Math.max(0, Math.max(ofAll, ofOwner) - Date.now());
  }

  async #execute<T>(route: string, health: Health, work: () => Promise<T>): Promise<T> {
    // The breaker itself would make this call wait for the probe.
    if (health.breaker.state === CircuitState.HalfOpen) return await this.#callBeside(route, health, work);
    try {
      return await health.breaker.execute(work);
    } catch (error) {
      // Called all the same, as there was no other route, or as the breaker's pause is longer: its clock was put back.
      if (error instanceof BrokenCircuitError) return await this.#callBeside(route, health, work);
      throw error;
    }
  }

  /** A call beside a probe. If the probe takes long, this call becomes one, too. */
  async #callBeside<T>(route: string, health: Health, work: () => Promise<T>): Promise<T> {
    if (pauseLeft(health) > 0) return await work();
    health.pausedAt = Date.now();
    const result = await work();
    if (this.#routes.get(route) === health) {
      this.#routes.delete(route);
      this.#onChange(route, 'closed', health.pausedFor);
    }
    return result;
  }

  /** Forgets routes that nothing calls from now on. */
  forget(isGone: (route: string) => boolean): void {
    for (const route of [...this.#routes.keys()]) {
      if (!isGone(route)) continue;
      this.#routes.delete(route);
      this.#onChange(route, undefined, null);
    }
  }

  /** Forgets the oldest healthy route; if there is none, the oldest. */
  #forgetOne(): void {
    let [forgotten] = this.#routes.keys();
    for (const [route, { breaker }] of this.#routes) {
      if (breaker.state !== CircuitState.Closed) continue;
      forgotten = route;
      break;
    }
    if (forgotten === undefined) return;
    this.#routes.delete(forgotten);
    this.#onChange(forgotten, undefined, null);
  }

  #healthOf(route: string): Health {
    const known = this.#routes.get(route);
    const settings = this.#settings();
    if (known?.settings === settings) return known;
    if (known === undefined && this.#routes.size >= maxRoutes) this.#forgetOne();
    const health: Health = { ...fresh, recent: [], breaker: createBreaker(settings), settings };
    health.breaker.onStateChange((state) => {
      // A long call may end after its route was forgotten.
      if (this.#routes.get(route) !== health) return;
      health.pausedAt = Date.now();
      this.#onChange(route, stateNames[state] ?? 'open', health.pausedFor);
    });
    this.#routes.set(route, health);
    if (known !== undefined) this.#onChange(route, undefined, null);
    return health;
  }
}

/** How long the route remains paused, for whomever it is, in ms. */
function pauseLeft(health: Health): number {
  const now = Date.now();
  // If the clock was put back, the pause begins anew: nobody knows how long it has lasted.
  health.pausedAt = Math.min(health.pausedAt, now);
  return Math.max(0, health.pausedAt + health.settings.breakerPauseMs - now);
}

function note(health: Health, call: RecentCall, isProbe: boolean): void {
  const { recent, settings } = health;
  if (isProbe) recent.length = 0;
  else if (recent.length >= settings.breakerCalls) recent.shift();
  recent.push(call);
  if (!call.hasFailed) {
    health.failedInARow = 0;
    return;
  }
  if (isProbe || health.failedInARow === 0) health.failedOf = call.owner;
  else if (health.failedOf !== call.owner) health.failedOf = null;
  health.failedInARow++;
}

function startMinute(health: Health): void {
  const now = Date.now();
  const sinceMs = now - health.minuteAt;
  if (sinceMs >= 0 && sinceMs < minuteMs) return;
  health.callsBefore = sinceMs >= 0 && sinceMs < 2 * minuteMs ? health.calls : 0;
  health.calls = 0;
  health.minuteAt = now;
}

function createBreaker({
  breakerThreshold,
  breakerCalls: size,
  breakerPauseMs,
}: RoutingSettings): CircuitBreakerPolicy {
  // The library requires less than 1: this threshold is crossed only when all calls have failed.
  const threshold = Math.min(breakerThreshold, 1 - 1 / (2 * size));
  const counts = new CountBreaker({ threshold, size, minimumNumberOfCalls: Math.ceil(size / 2) });
  const breaker: CircuitBreakerPolicy = circuitBreaker(
    // A probe that its vendor has not answered proves nothing, but the breaker would count it as a success.
    handleWhen((error) => isRouteFailure(error) || (breaker.state === CircuitState.HalfOpen && !isAnswer(error))),
    { breaker: counts, halfOpenAfter: breakerPauseMs },
  );
  return breaker;
}

const stateNames: Partial<Record<CircuitState, RouteState>> = {
  [CircuitState.Closed]: 'closed',
  [CircuitState.HalfOpen]: 'half-open',
  [CircuitState.Open]: 'open',
};

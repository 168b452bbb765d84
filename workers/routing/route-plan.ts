import { type RoutedModel, routeName } from '../../shared/catalogue/catalogue.ts';
import type { RoutingSettings } from '../../shared/config/routing-settings.ts';
import { ApiError } from '../../shared/errors.ts';
import type { Draw } from '../../shared/runtime/rendezvous.ts';
import type { FrameSink, VendorFrame } from '../vendors/vendor.ts';
import type { Account } from './account.ts';
import type { Failure } from './failure.ts';
import type { RouteBreakers } from './route-breakers.ts';
import type { VendorPool } from './vendor-pool.ts';

/** The target of one call. */
export interface RouteTarget {
  readonly account: Account;
  readonly routed: RoutedModel;
}

/** The pause before a route is retried if its vendor requests none: it doubles, and is drawn from its upper half. */
const firstPauseMs = 250;
const maxPauseMs = 4000;

/** The pause after so many failed calls. */
export function pauseMs(calls: number): number {
  const doubled = Math.min(maxPauseMs, firstPauseMs * 2 ** (calls - 1));
  return (doubled / 2) * (1 + Math.random());
}

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
  /** Until when its vendor asked not to be called, in ms of `performance.now()`. */
  waitsUntil: number;
  /** Whether it has no capacity. */
  isFull: boolean;
}

/** Decides which route of a job comes next. */
export class RoutePlan {
  readonly #routes: readonly PlannedRoute[];
  readonly #breakers: RouteBreakers;
  readonly #pool: VendorPool;
  readonly #settings: RoutingSettings;
  readonly #owner: string;
  readonly #account: string | undefined;
  readonly #draw: Draw | undefined;

  /**
   * @param owner the account whose job it is
   * @param account the vendor's only eligible one; undefined: any
   * @param draw by which a vendor's keys are chosen; undefined: in rotation
   */
  constructor(
    routes: readonly RoutedModel[],
    breakers: RouteBreakers,
    pool: VendorPool,
    settings: RoutingSettings,
    owner: string,
    account?: string,
    draw?: Draw,
  ) {
    this.#routes = routes.map(plannedRoute);
    this.#breakers = breakers;
    this.#pool = pool;
    this.#settings = settings;
    this.#owner = owner;
    this.#account = account;
    this.#draw = draw;
  }

  /**
   * The first call: the first healthy route with a key that is not cooling down. If there is none, the first route that is not
   * dead.
   * @throws ApiError 503 if all are dead for the job's account.
   */
  first(): NextCall {
    const admitted = this.#routes.filter((route) => this.#breakers.admits(route.name, this.#owner));
    const route =
      admitted.find((planned) => this.#isWarm(planned)) ??
      admitted[0] ??
      this.#routes.find(({ name }) => !this.#breakers.isDead(name, this.#owner));
    if (route === undefined) throw this.#unavailable();
    return { target: this.#target(route), waitMs: 0 };
  }

  /** The call after a failed one; undefined if nothing more can be tried. */
  after({ routed, account }: RouteTarget, failure: Failure, calls: number): NextCall | undefined {
    const failed = this.#routes.find((route) => route.routed === routed) as PlannedRoute;
    if (failure.reason === 'key' || failure.reason === 'limit') failed.refused.push(account.id);
    failed.failure = failure;
    failed.waitsUntil = performance.now() + (failure.error.retryAfterMs ?? 0);
    return this.#withAnotherKey(failed) ?? this.#elsewhere() ?? this.#again(calls);
  }

  /** Another route, because this one has no capacity; undefined if there is none. */
  besides({ routed }: RouteTarget): RouteTarget | undefined {
    const full = this.#routes.find((route) => route.routed === routed) as PlannedRoute;
    full.isFull = true;
    return this.#elsewhere()?.target;
  }

  /** For how long no eligible key of a route may be called, because its vendor limits them, in ms. */
  limitedMs({ routed: { route } }: RouteTarget): number {
    return this.#pool.limitedMs(route.vendor, route.model, this.#account);
  }

  /** Ids of the keys that may be called on a route, in order of preference. */
  eligible({ routed, account }: RouteTarget): readonly string[] {
    if (this.#account !== undefined) return [account.id];
    const { refused } = this.#routes.find((route) => route.routed === routed) as PlannedRoute;
    const { vendor, model } = routed.route;
    const others = this.#pool.warm(vendor, model).filter((id) => id !== account.id && !refused.includes(id));
    return [account.id, ...others];
  }

  /** The account of a route's vendor with that id. */
  account({ routed, account }: RouteTarget, id: string): Account {
    return this.#pool.find(routed.route.vendor, id) ?? account;
  }

  /** Another key may not have the limit or refusal of this one. */
  #withAnotherKey(route: PlannedRoute): NextCall | undefined {
    const { reason } = route.failure ?? {};
    const { vendor, model } = route.routed.route;
    if (this.#account !== undefined || (reason !== 'key' && reason !== 'limit')) return undefined;
    const account = this.#pool.pickOther(vendor, model, route.refused, this.#draw);
    if (account === undefined) return undefined;
    return { target: { routed: route.routed, account }, waitMs: 0 };
  }

  /** A route that was not called yet, without a wait. */
  #elsewhere(): NextCall | undefined {
    const fresh = this.#routes.filter(
      ({ failure, isFull, name }) => failure === undefined && !isFull && this.#breakers.admits(name, this.#owner),
    );
    const route = fresh.find((planned) => this.#isWarm(planned)) ?? fresh[0];
    return route && { target: this.#target(route), waitMs: 0 };
  }

  /** The route that may be called again the soonest. */
  #again(calls: number): NextCall | undefined {
    const now = performance.now();
    const latest = now + this.#settings.maxRetryAfterMs;
    const candidates = this.#routes.filter(
      ({ failure, waitsUntil, name }) =>
        failure?.sameRoute && waitsUntil <= latest && this.#breakers.admits(name, this.#owner),
    );
    const [first, ...others] = candidates;
    if (first === undefined) return undefined;
    const route = others.reduce((best, each) => (each.waitsUntil < best.waitsUntil ? each : best), first);
    const waitMs = Math.max(route.waitsUntil - now, pauseMs(calls));
    return { target: this.#target(route), waitMs };
  }

  #isWarm({ routed: { route } }: PlannedRoute): boolean {
    return this.#pool.isWarm(route.vendor, route.model);
  }

  #target({ routed }: PlannedRoute): RouteTarget {
    const { vendor, model } = routed.route;
    const account =
      this.#account === undefined ? this.#pool.pick(vendor, model, this.#draw) : this.#pool.find(vendor, this.#account);
    if (account === undefined) throw this.#unavailable();
    return { routed, account };
  }

  #unavailable(): ApiError {
    if (this.#routes.length === 0) {
      return new ApiError('service_unavailable', 'No vendor is set up for this model.');
    }
    const pauses = this.#routes.map(({ name }) => this.#breakers.pauseMs(name, this.#owner));
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
  return { name: routeName(routed.route), routed, refused: [], failure: undefined, waitsUntil: 0, isFull: false };
}

/** Burst of retries, and how fast that allowance refills, for processes with few calls to take a share of. */
const reserve = 10;
const reservePerSecond = 1;
/** Number of calls whose share may accumulate. */
const savedCalls = 1000;
/** For how long it is remembered how much each account has retried, in ms. */
const rememberedMs = 100_000;

/**
 * Bounds retries to a share of the calls: when everything fails, retries must not double the load on vendors in trouble. A
 * process with few calls may still retry occasionally. An account whose requests all fail would use up the retries of all, so as
 * many as the reserve beyond them are for accounts that have retried little.
 */
export class RetryBudget {
  readonly #share: () => number;
  readonly #now: () => number;
  /** Retries that accounts have made of late beyond the share of their own calls. */
  readonly #retried = new Map<string, number>();
  #balance = reserve;
  #refilledAt: number;
  #forgottenAt: number;

  /** @param share retries for each call, such as 0.1 */
  constructor(share: () => number, now: () => number = () => performance.now()) {
    this.#share = share;
    this.#now = now;
    this.#refilledAt = now();
    this.#forgottenAt = this.#refilledAt;
  }

  /** Retries that all accounts are currently allowed; the next one needs a whole unit. */
  get balance(): number {
    this.#refill();
    return Math.max(0, this.#balance);
  }

  /** Credits the first call of an account's job. */
  deposit(owner: string): void {
    const share = this.#share();
    this.#balance = Math.min(this.#balance + share, Math.max(reserve, share * savedCalls));
    const retried = this.#retried.size === 0 ? undefined : this.#retried.get(owner);
    if (retried !== undefined) this.#retried.set(owner, Math.max(0, retried - share));
  }

  /** Withdraws one retry of an account's job; false if none remains. */
  withdraw(owner: string): boolean {
    this.#refill();
    const retried = this.#retried.get(owner) ?? 0;
    const floor = retried > reserve - 1 ? 0 : -reserve;
    if (this.#balance - 1 < floor) return false;
    this.#balance -= 1;
    this.#retried.set(owner, retried + 1);
    return true;
  }

  #refill(): void {
    const now = this.#now();
    const earned = (Math.max(0, now - this.#refilledAt) / 1000) * reservePerSecond;
    this.#refilledAt = now;
    // The share earned by calls beyond the reserve is kept.
    if (this.#balance < reserve) this.#balance = Math.min(reserve, this.#balance + earned);
    if (now - this.#forgottenAt < rememberedMs && now >= this.#forgottenAt) return;
    this.#forgottenAt = now;
    this.#retried.clear();
  }
}

/** Takes the frames of one call and reports the first one: from then on no other call may be made. */
export class AttemptSink implements FrameSink {
  readonly #sink: FrameSink;
  #hasWritten = false;
  #isClosed = false;
  #onStarted: (() => void) | undefined;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  /** Resolves on the first frame. */
  started(): Promise<undefined> {
    return new Promise((resolve) => {
      this.#onStarted = () => resolve(undefined);
      if (this.#hasWritten) this.#onStarted();
    });
  }

  get hasWritten(): boolean {
    return this.#hasWritten;
  }

  write(frame: VendorFrame): boolean {
    // Frames of an abandoned call must not mix with those of the next.
    if (this.#isClosed) return true;
    if (!this.#hasWritten) {
      this.#hasWritten = true;
      this.#onStarted?.();
    }
    return this.#sink.write(frame);
  }

  drained(): Promise<void> {
    return this.#sink.drained();
  }

  /** Takes no more frames. */
  close(): void {
    this.#isClosed = true;
  }
}

import { isDeepStrictEqual } from 'node:util';
import { type RoutedModel, routeName } from '../../shared/catalogue/catalogue.ts';
import type { RoutingSettings } from '../../shared/config/routing-settings.ts';
import type { ApiError } from '../../shared/errors.ts';
import type { RouteHealth } from '../../shared/queue/worker-registry.ts';
import { rendezvous } from '../../shared/runtime/rendezvous.ts';
import { waitFor } from '../http/aborted.ts';
import { LostAnswerError } from '../http/connection-errors.ts';
import type { Pacer } from '../pacing/pacer.ts';
import type { FrameSink } from '../vendors/vendor.ts';
import type { WorkerMetrics } from '../worker-metrics.ts';
import { type AdmittedCall, admitCall, type CallDemand } from './admit-call.ts';
import { type CallPart, callParts, type RepeatableJob } from './call-parts.ts';
import { type CallOutcome, type Failure, failedOutcome, readFailure } from './failure.ts';
import { orderRoutes } from './order-routes.ts';
import { isUnspent, Refusals, type RefusalsOptions } from './refusals.ts';
import { type Pauses, pauseName, RouteBreakers } from './route-breakers.ts';
import { AttemptSink, type NextCall, RetryBudget, RoutePlan, type RouteTarget } from './route-plan.ts';
import type { SharedHealth } from './shared-health.ts';
import type { VendorPool } from './vendor-pool.ts';

/** With fewer than this many ms reserved ahead, a vendor may soon have capacity that nobody uses. */
const unusedMs = 250;

/** Values of a breaker's state in the metrics. */
const stateValues = { closed: 0, 'half-open': 0.5, open: 1 };

/** The limits of one call. */
export interface CallLimits {
  readonly signal: AbortSignal;
  readonly silenceMs: number;
  readonly sink: FrameSink;
}

/** A job to be routed. */
export interface RoutedJob<T> extends RepeatableJob {
  /** The routes that may serve it, from the catalogue. */
  readonly routes: readonly RoutedModel[];
  /** The vendor's only eligible account, if something of the job is stored there. */
  readonly account?: string | undefined;
  /** What it shares with jobs that a vendor's prompt cache can serve with it, its account included; undefined: nothing. */
  readonly affinity?: string | undefined;
  /** Whether the caller wants the answer streamed. */
  readonly stream: boolean;
  readonly signal: AbortSignal;
  readonly sink: FrameSink;
  /** What it needs of its vendor, if that has limits. */
  readonly demand?: (maxRetryAfterMs: number) => CallDemand;
  /** Calls of vendors that were made for it before; left out: none. */
  readonly earlierCalls?: number;
  /** Called when a route with limits, or any route of its vendor, has capacity for one more call. */
  readonly onCapacity?: (route: string, of: 'route' | 'vendor') => void;
  /** Tokens that the answer has cost; undefined if unknown. */
  readonly tokensOf?: (answer: T) => number | undefined;
  /** Called before each call, with the call's number. */
  readonly onCall: (target: RouteTarget, calls: number) => void;
  /** Called after a failed one, if another may follow: until then no vendor is at work for the job. */
  readonly onFailure?: () => void;
  /** Makes one call. @throws ApiError */
  readonly call: (target: RouteTarget, limits: CallLimits) => Promise<T>;
}

/** Dependencies of a router. */
export interface RouterOptions extends Omit<RefusalsOptions, 'settings' | 'callsPerMinute'> {
  /** Until they are replaced. */
  readonly settings: RoutingSettings;
  /** How long a vendor may stay silent if its route sets no limit, in ms. */
  readonly silenceMs: number;
  readonly region: string | undefined;
  /** Tells other workers which routes are paused and which keys are refused; left out: there are none. */
  readonly health?: Pick<SharedHealth, 'pause' | 'resume' | 'refuse'>;
  /** Keeps the calls within the limits of vendors; left out: there are none. */
  readonly pacer?: Pacer;
  /** Whether a route's state is a metric: names of open vendors' models come from callers, who must not grow the series. */
  readonly isReported?: (route: string) => boolean;
  readonly metrics: Pick<WorkerMetrics, 'vendorCalls' | 'vendorRetries' | 'vendorPacing' | 'routeState'>;
}

/**
 * Finds a vendor for a job and, as long as no part of the answer was sent, the next one on a failure: another key, another route,
 * a fallback model, the same route after a pause. Bounded by attempts, by the process's retry budget and by the job's deadline.
 */
export class Router {
  readonly #options: RouterOptions;
  readonly #breakers: RouteBreakers;
  readonly #budget: RetryBudget;
  readonly #refusals: Refusals;
  #settings: RoutingSettings;

  constructor(options: RouterOptions) {
    this.#options = options;
    this.#settings = options.settings;
    const settings = (): RoutingSettings => this.#settings;
    const { isReported = () => true } = options;
    this.#breakers = new RouteBreakers(settings, (route, state, owner) => {
      if (state === 'open') options.health?.pause(pauseName(route, owner), this.#settings.breakerPauseMs);
      if (state === 'closed') options.health?.resume(pauseName(route, owner));
      if (state === undefined) options.metrics.routeState.remove({ route });
      else if (isReported(route)) options.metrics.routeState.set({ route }, stateValues[state]);
    });
    this.#budget = new RetryBudget(() => this.#settings.retryBudget);
    const callsPerMinute = (route: string): number => this.#breakers.callsPerMinute(route);
    this.#refusals = new Refusals({ ...options, settings, callsPerMinute });
  }

  /** Replaces the settings for future calls. The routes' health is kept, unless changed settings would judge it differently. */
  replaceSettings(settings: RoutingSettings): void {
    if (!isDeepStrictEqual(settings, this.#settings)) this.#settings = settings;
  }

  /** Forgets routes that are gone: nothing calls them again, so that they would stay unhealthy among the metrics. */
  forgetRoutes(isGone: (route: string) => boolean): void {
    this.#breakers.forget(isGone);
  }

  /** Retries that are currently allowed. */
  get retryBalance(): number {
    return this.#budget.balance;
  }

  /** Notes what other workers have paused, with ms. */
  pauseElsewhere(pauses: Pauses): void {
    this.#breakers.pauseElsewhere(pauses);
  }

  /** Routes that are unhealthy, or recently were. */
  routeHealth(): RouteHealth[] {
    return this.#breakers.health();
  }

  /** Calls the routes one after the other until one succeeds. @throws ApiError of the last one */
  async run<T>(job: RoutedJob<T>): Promise<T> {
    const { pool, region } = this.#options;
    const { affinity } = job;
    const draw = affinity === undefined ? undefined : (name: string) => rendezvous(affinity)(name);
    const routes = job.routes.length > 1 ? orderRoutes(job.routes, region, draw) : job.routes;
    const plan = new RoutePlan(routes, this.#breakers, pool, this.#settings, job.owner, job.account, draw);
    this.#budget.deposit(job.owner);
    let next = plan.first();
    for (let calls = 1; ; calls++) {
      const admitted = isLimited(pool, next.target) ? await this.#admit(job, plan, next) : undefined;
      if (admitted !== undefined) next = { target: admitted.target, waitMs: 0 };
      const slot = admitted?.slot;
      const sink = new AttemptSink(job.sink);
      try {
        const answer = await this.#attempt(job, next.target, sink, calls);
        if (slot !== undefined) this.#endSlot(job, next.target, slot, job.tokensOf?.(answer));
        return answer;
      } catch (thrown) {
        sink.close();
        const tokens = isUnspent(thrown) && !sink.hasWritten ? 0 : undefined;
        if (slot !== undefined) this.#endSlot(job, next.target, slot, tokens);
        const failure = readFailure(thrown, job.repeatable);
        if (failure === undefined || sink.hasWritten || job.signal.aborted) throw thrown;
        job.onFailure?.();
        this.#refusals.note(next.target, failure, job.request);
        next = this.#afterFailure(job, plan, next, failure, calls);
      }
      if (next.waitMs > 0) await waitFor(next.waitMs, job.signal);
    }
  }

  /** Makes the calls of a job that takes several on one route. */
  parts(job: RepeatableJob, target: RouteTarget): CallPart {
    const { pacer } = this.#options;
    const mayRetry = this.#mayRetry.bind(this);
    return callParts({ settings: this.#settings, refusals: this.#refusals, pacer, mayRetry }, job, target);
  }

  /** Waits until a call may be made within the limits of its vendor. @throws SaturatedError if that is too long for this worker */
  async #admit<T>(job: RoutedJob<T>, plan: RoutePlan, { target }: NextCall): Promise<AdmittedCall | undefined> {
    const { pacer, metrics } = this.#options;
    if (pacer === undefined || job.demand === undefined) return undefined;
    const admitted = await admitCall(pacer, plan, target, job.demand(this.#settings.maxRetryAfterMs), job.signal);
    const { slot } = admitted;
    if (slot === undefined) return admitted;
    const { route } = admitted.target.routed;
    metrics.vendorPacing.inc({ vendor: route.vendor, outcome: slot.waitMs > 0 ? 'soon' : 'at_once' });
    if (slot.waitMs < unusedMs) job.onCapacity?.(routeName(route), 'route');
    return admitted;
  }

  #endSlot<T>(
    job: RoutedJob<T>,
    { routed: { route } }: RouteTarget,
    slot: NonNullable<AdmittedCall['slot']>,
    tokens: number | undefined,
  ): void {
    slot.end(tokens);
    const limited = this.#options.pacer?.parallelLimit(route.vendor);
    if (limited !== undefined) job.onCapacity?.(routeName(route), limited);
  }

  /** The next call after a failed one. @throws ApiError its error, if nothing more may be tried. */
  #afterFailure<T>(
    job: RoutedJob<T>,
    plan: RoutePlan,
    { target }: NextCall,
    failure: Failure,
    calls: number,
  ): NextCall {
    const { attempts } = this.#settings;
    const next = plan.after(target, failure, calls);
    const isSpent = calls + (job.earlierCalls ?? 0) >= attempts;
    const isElsewhere = next !== undefined && next.target.routed !== target.routed;
    if (job.demand !== undefined && (isSpent || (!isElsewhere && next?.waitMs !== 0))) {
      // It is not called before its time; the job may wait for that outside of this worker.
      const saturation = this.#refusals.saturation(target, failure, plan.limitedMs(target), isSpent);
      if (saturation !== undefined) throw saturation;
    }
    if (next === undefined || calls >= attempts) throw failure.error;
    if (Date.now() + next.waitMs >= job.deadlineAt) throw failure.error;
    if (!this.#mayRetry(job, target, failure)) throw failure.error;
    return next;
  }

  /** Takes one retry from what the process may make; false if none is left. */
  #mayRetry({ owner }: Pick<RepeatableJob, 'owner'>, { routed: { route } }: RouteTarget, { reason }: Failure): boolean {
    const isAllowed = this.#budget.withdraw(owner);
    const { vendor } = route;
    this.#options.metrics.vendorRetries.inc({ vendor, reason: isAllowed ? reason : 'over_budget' });
    return isAllowed;
  }

  async #attempt<T>(job: RoutedJob<T>, target: RouteTarget, sink: AttemptSink, calls: number): Promise<T> {
    const { metrics, silenceMs } = this.#options;
    const { route } = target.routed;
    job.onCall(target, calls);
    const limits = limitsOf(job, route.firstByteMs, sink);
    const { signal } = limits;
    let outcome: CallOutcome = 'failed';
    let work: Promise<T> | undefined;
    const call = (): Promise<T> => {
      work = job.call(target, { signal, sink, silenceMs: route.idleMs ?? silenceMs });
      return work;
    };
    try {
      // A route is healthy once its answer starts: a long answer must not hold up the breaker.
      const first = job.stream ? (): Promise<T | undefined> => Promise.race([call(), sink.started()]) : call;
      const value = await this.#breakers.call(routeName(route), job.owner, first);
      const answer = job.stream ? await work : value;
      outcome = 'answered';
      if (target.account.refusal !== undefined) this.#options.pool.accept(target.account, route.model);
      return answer as T;
    } catch (error) {
      // The time limit takes precedence over the error of the call that it aborted.
      const failure = limits.late() ?? error;
      outcome = failedOutcome(failure, job.signal);
      throw failure;
    } finally {
      limits.release();
      metrics.vendorCalls.inc({ vendor: route.vendor, outcome });
    }
  }
}

interface AttemptLimits {
  readonly signal: AbortSignal;
  /** The error of an answer that did not start in time. */
  late(): ApiError | undefined;
  release(): void;
}

/** The signal of one call: the job's, or if the route limits the time to the first byte, one that this limit aborts as well. */
function limitsOf<T>(
  { signal, stream }: RoutedJob<T>,
  firstByteMs: number | undefined,
  sink: AttemptSink,
): AttemptLimits {
  if (firstByteMs === undefined || !stream) return { signal, late: nothing, release: nothing };
  const controller = new AbortController();
  let late: ApiError | undefined;
  const onAbort = (): void => controller.abort(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort, { once: true });
  const timer = setTimeout(() => {
    if (sink.hasWritten) return;
    late = new LostAnswerError('timeout', `The model's vendor did not begin to answer within ${firstByteMs} ms.`);
    controller.abort(late);
  }, firstByteMs);
  return {
    signal: controller.signal,
    late: () => late,
    release: () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
    },
  };
}

/** One for all calls: an open stream would keep its own. */
function nothing(): undefined {
  return undefined;
}

function isLimited(pool: VendorPool, { routed: { route } }: RouteTarget): boolean {
  return pool.isLimited(route.vendor, route.model);
}

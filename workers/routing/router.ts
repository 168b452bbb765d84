import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { type RoutedModel, routeName } from '../../shared/catalogue/catalogue.ts';
import type { Config } from '../../shared/config/config.ts';
import type { RoutingSettings } from '../../shared/config/routing-settings.ts';
import { ApiError } from '../../shared/errors.ts';
import type { KeyRefusal, RouteHealth } from '../../shared/queue/worker-registry.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import type { Registry } from '../../shared/runtime/metrics.ts';
import { LostAnswerError } from '../http/exchange.ts';
import type { RequestBody } from '../vendors/request-body.ts';
import type { FrameSink } from '../vendors/vendor.ts';
import { createWorkerMetrics, type WorkerMetrics } from '../worker-metrics.ts';
import { type Failure, isRefusedKey, readFailure } from './failure.ts';
import { refusalSentence } from './key-refusal.ts';
import { RouteBreakers } from './route-breakers.ts';
import { AttemptSink, type NextCall, orderRoutes, RetryBudget, RoutePlan, type RouteTarget } from './route-plan.ts';
import { VendorPool } from './vendor-pool.ts';

/** How long a key cools down: after a limit without a given time, after a limit at most, and after a refusal. */
const limitedMs = 5000;
const maxLimitedMs = 60_000;
const refusedMs = 60_000;

/** Values of a breaker's state in the metrics. */
const stateValues = { closed: 0, 'half-open': 0.5, open: 1 };

/** The limits of one call. */
export interface CallLimits {
  readonly signal: AbortSignal;
  readonly silenceMs: number;
  readonly sink: FrameSink;
}

/** A job to be routed. */
export interface RoutedJob<T> {
  /** The routes that may serve it, from the catalogue. */
  readonly routes: readonly RoutedModel[];
  /** The only eligible account, if something of the job is stored there. */
  readonly account?: string;
  /** Whether its work may be repeated. */
  readonly repeatable: boolean;
  /** Whether the caller wants the answer streamed. */
  readonly stream: boolean;
  /** Its deadline, in ms since 1970. */
  readonly deadlineAt: number;
  readonly signal: AbortSignal;
  readonly sink: FrameSink;
  /** Its text, of which operators are shown nothing. */
  readonly request?: RequestBody;
  /** Called before each call, with the call's number. */
  readonly onCall: (target: RouteTarget, calls: number) => void;
  /** Makes one call. @throws ApiError */
  readonly call: (target: RouteTarget, limits: CallLimits) => Promise<T>;
}

/** Dependencies of a router. */
export interface RouterOptions {
  readonly pool: VendorPool;
  readonly settings: () => RoutingSettings;
  /** How long a vendor may stay silent if its route sets no limit, in ms. */
  readonly silenceMs: number;
  readonly region: string | undefined;
  /** Whether a route's state is a metric: names of open vendors' models come from callers, who must not grow the series. */
  readonly isReported?: (route: string) => boolean;
  /** Called when a vendor refuses a key, once until the vendor accepts it again. */
  readonly onRefused?: (vendor: string, refusal: KeyRefusal) => void;
  readonly metrics: Pick<WorkerMetrics, 'vendorCalls' | 'vendorRetries' | 'routeState'>;
}

/**
 * Finds a vendor for a job and, as long as no part of the answer was sent, the next one on a failure: another key, another route,
 * a fallback model, the same route after a pause. Bounded by attempts, by the process's retry budget and by the job's deadline.
 */
export class Router {
  readonly #options: RouterOptions;
  readonly #breakers: RouteBreakers;
  readonly #budget: RetryBudget;

  constructor(options: RouterOptions) {
    this.#options = options;
    const { isReported = () => true } = options;
    this.#breakers = new RouteBreakers(options.settings, (route, state) => {
      if (!isReported(route)) return;
      if (state === undefined) options.metrics.routeState.remove({ route });
      else options.metrics.routeState.set({ route }, stateValues[state]);
    });
    this.#budget = new RetryBudget(() => options.settings().retryBudget);
  }

  /** Retries that are currently allowed. */
  get retryBalance(): number {
    return this.#budget.balance;
  }

  /** Routes that are unhealthy, or recently were. */
  routeHealth(): RouteHealth[] {
    return this.#breakers.health();
  }

  /** Calls the routes one after the other until one succeeds. @throws ApiError of the last one */
  async run<T>(job: RoutedJob<T>): Promise<T> {
    const { pool, settings, region } = this.#options;
    const routes = orderRoutes(job.routes, region);
    const plan = new RoutePlan(routes, this.#breakers, pool, settings(), job.account);
    this.#budget.deposit();
    let next = plan.first();
    for (let calls = 1; ; calls++) {
      const sink = new AttemptSink(job.sink);
      try {
        return await this.#attempt(job, next.target, sink, calls);
      } catch (thrown) {
        sink.close();
        const failure = readFailure(thrown, job.repeatable);
        if (failure === undefined || sink.hasWritten || job.signal.aborted) throw thrown;
        this.#coolDown(next.target, failure, job.request);
        next = this.#afterFailure(job, plan, next, failure, calls);
      }
      if (next.waitMs > 0) await pause(next.waitMs, job.signal);
    }
  }

  /** The next call after a failed one. @throws ApiError its error, if nothing more may be tried. */
  #afterFailure<T>(
    job: RoutedJob<T>,
    plan: RoutePlan,
    { target }: NextCall,
    failure: Failure,
    calls: number,
  ): NextCall {
    const { metrics, settings } = this.#options;
    const next = plan.after(target, failure, calls);
    if (next === undefined || calls >= settings().attempts) throw failure.error;
    if (Date.now() + next.waitMs >= job.deadlineAt) throw failure.error;
    const isAllowed = this.#budget.withdraw();
    const { vendor } = target.routed.route;
    metrics.vendorRetries.inc({ vendor, reason: isAllowed ? failure.reason : 'over_budget' });
    if (!isAllowed) throw failure.error;
    return next;
  }

  async #attempt<T>(job: RoutedJob<T>, target: RouteTarget, sink: AttemptSink, calls: number): Promise<T> {
    const { metrics, silenceMs } = this.#options;
    const { route } = target.routed;
    job.onCall(target, calls);
    const limits = limitsOf(job, route.firstByteMs, sink);
    const { signal } = limits;
    let outcome = 'failed';
    let work: Promise<T> | undefined;
    const call = (): Promise<T> => {
      work = job.call(target, { signal, sink, silenceMs: route.idleMs ?? silenceMs });
      return work;
    };
    try {
      // A route is healthy once its answer starts: a long answer must not hold up the breaker.
      const first = job.stream ? (): Promise<T | undefined> => Promise.race([call(), sink.started()]) : call;
      const value = await this.#breakers.call(routeName(route), first);
      const answer = job.stream ? await work : value;
      outcome = 'answered';
      if (target.account.refusal !== undefined) this.#options.pool.accept(target.account, route.model);
      return answer as T;
    } catch (error) {
      // The time limit takes precedence over the error of the call that it aborted.
      throw limits.late() ?? error;
    } finally {
      limits.release();
      metrics.vendorCalls.inc({ vendor: route.vendor, outcome });
    }
  }

  /** A limited key cools down for the model, and so does one without the right to it; a refused key cools down for all models. */
  #coolDown({ account, routed }: RouteTarget, { reason, error }: Failure, request: RequestBody | undefined): void {
    const { pool } = this.#options;
    const { model } = routed.route;
    if (reason === 'key') pool.coolDown(account, refusedMs, error.vendorStatus === 403 ? model : undefined);
    if (isRefusedKey(error)) this.#refuse({ account, routed }, error, request);
    if (reason !== 'limit') return;
    pool.coolDown(account, Math.min(error.retryAfterMs ?? limitedMs, maxLimitedMs), model);
  }

  #refuse({ account, routed }: RouteTarget, error: ApiError, request: RequestBody | undefined): void {
    const status = error.vendorStatus as number;
    const refusal = { status, message: refusalSentence(error, request), at: Date.now() };
    const model = status === 403 ? routed.route.model : undefined;
    if (!this.#options.pool.refuse(account, { ...refusal, model })) return;
    this.#options.onRefused?.(account.vendor.name, refusal);
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
  if (firstByteMs === undefined || !stream) return { signal, late: () => undefined, release: () => undefined };
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

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await delay(ms, undefined, { signal });
  } catch {
    const reason: unknown = signal.reason;
    throw reason instanceof ApiError ? reason : new ApiError('cancelled', 'The request was cancelled.');
  }
}

/** Finds a vendor for each job: the vendors that are on, the router over them, and their metrics. */
export class Routing {
  readonly vendors: VendorPool;
  readonly router: Router;
  readonly metrics: WorkerMetrics;
  #settings: Config['routing'];
  #listed: ReadonlySet<string>;

  /** @param log gets warnings about keys that their vendors refuse */
  constructor(
    { vendors, models, routing, vendorSilenceMs, region }: Config,
    registry: Registry,
    log: Pick<Logger, 'warn'>,
  ) {
    this.#settings = routing;
    this.#listed = routesOf(models);
    this.vendors = new VendorPool(vendors);
    this.metrics = createWorkerMetrics(registry, {
      retryBudget: () => this.router.retryBalance,
      keyHealth: () => this.vendors.keyHealth(),
    });
    this.router = new Router({
      pool: this.vendors,
      settings: () => this.#settings,
      silenceMs: vendorSilenceMs,
      region,
      isReported: (route) => this.#listed.has(route),
      metrics: this.metrics,
      onRefused: (vendor, { status, message }) =>
        log.warn({ vendor, status, said: message }, 'vendor rejected the API key: check its setting'),
    });
  }

  /** Replaces vendors and settings for future calls. */
  replace({ vendors, models, routing }: Pick<Config, 'vendors' | 'models' | 'routing'>): void {
    this.#listed = routesOf(models);
    this.vendors.replace(vendors);
    // The routes' health is kept, unless the changed settings would judge it differently.
    if (!isDeepStrictEqual(routing, this.#settings)) this.#settings = routing;
  }
}

function routesOf(models: Config['models']): ReadonlySet<string> {
  return new Set(models.flatMap(({ routes }) => routes.map(routeName)));
}

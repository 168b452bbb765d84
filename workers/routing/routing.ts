import { routeName } from '../../shared/catalogue/catalogue.ts';
import type { Config } from '../../shared/config/config.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import type { Registry } from '../../shared/runtime/metrics.ts';
import type { Pacer } from '../pacing/pacer.ts';
import { createWorkerMetrics, type WorkerMetrics } from '../worker-metrics.ts';
import { Router } from './router.ts';
import type { SharedHealth } from './shared-health.ts';
import { usualMaxCallMs, VendorPool } from './vendor-pool.ts';

/** Finds a vendor for each job: the vendors that are on, the router over them, and their metrics. */
export class Routing {
  readonly vendors: VendorPool;
  readonly router: Router;
  readonly metrics: WorkerMetrics;
  readonly #pacer: Pacer;
  readonly #health: SharedHealth;
  #listed: ReadonlySet<string>;

  /**
   * @param log gets warnings about keys that their vendors refuse
   * @param health what other workers have found
   * @param pacer keeps the calls within the vendors' limits
   */
  constructor(
    { vendors, models, routing, vendorSilenceMs, region, backgroundDeadlineMs }: Config,
    registry: Registry,
    log: Pick<Logger, 'warn'>,
    pacer: Pacer,
    health: SharedHealth,
  ) {
    this.#pacer = pacer;
    this.#health = health;
    this.#listed = routesOf(models);
    this.vendors = new VendorPool(vendors, Math.max(usualMaxCallMs, backgroundDeadlineMs));
    pacer.learned.tell({
      limited: ({ vendor, account: id, model }, ms) => this.vendors.limit({ vendor: { name: vendor }, id }, ms, model),
      read: () => this.vendors.forgetLimits((vendor, model) => pacer.learned.has(vendor, model)),
    });
    this.metrics = createWorkerMetrics(registry, {
      retryBudget: () => this.router.retryBalance,
      keyHealth: () => this.vendors.keyHealth(),
    });
    this.router = new Router({
      pool: this.vendors,
      settings: routing,
      silenceMs: vendorSilenceMs,
      region,
      pacer,
      health,
      isReported: (route) => this.#listed.has(route),
      metrics: this.metrics,
      onRefused: (vendor, { status, message }) =>
        log.warn({ vendor, status, said: message }, 'vendor rejected the API key: check its setting and its credit'),
    });
    health.tell({
      paused: (routes) => this.router.pauseElsewhere(routes),
      refused: ({ vendor, account: id, model }, ms) =>
        this.vendors.coolDown({ vendor: { name: vendor }, id }, ms, model),
    });
  }

  /** Gives unused capacity back, and closes all connections to vendors. */
  async close(): Promise<void> {
    this.#health.close();
    await this.#pacer.close();
    await this.vendors.close();
  }

  /** Whether calls of a route are limited, by the configuration or as was learned. */
  isLimited(route: string): boolean {
    const slash = route.indexOf('/');
    return this.vendors.isLimited(route.slice(0, slash), route.slice(slash + 1));
  }

  /** Replaces vendors and settings for future calls. */
  replace({ vendors, models, routing }: Pick<Config, 'vendors' | 'models' | 'routing'>): void {
    const before = this.#listed;
    this.#listed = routesOf(models);
    this.vendors.replace(vendors);
    this.#pacer.replace(vendors);
    this.router.replaceSettings(routing);
    const isOff = (route: string): boolean => !Object.hasOwn(vendors, route.slice(0, route.indexOf('/')));
    this.router.forgetRoutes((route) => isOff(route) || (before.has(route) && !this.#listed.has(route)));
  }
}

function routesOf(models: Config['models']): ReadonlySet<string> {
  return new Set(models.flatMap(({ routes }) => routes.map(routeName)));
}

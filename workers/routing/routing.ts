import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../../shared/config/config.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { createWorkerMetrics, type Registry, type WorkerMetrics } from '../../shared/runtime/metrics.ts';
import { Router } from './router.ts';
import { VendorPool } from './vendor-pool.ts';

/** Finds a vendor for each job: the vendors that are on, the router over them, and their metrics. */
export class Routing {
  readonly vendors: VendorPool;
  readonly router: Router;
  readonly metrics: WorkerMetrics;
  #settings: Config['routing'];

  /** @param log gets warnings about keys that their vendors refuse */
  constructor({ vendors, routing, vendorSilenceMs, region }: Config, registry: Registry, log: Pick<Logger, 'warn'>) {
    this.#settings = routing;
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
      metrics: this.metrics,
      onRefused: (vendor, { status, message }) =>
        log.warn({ vendor, status, said: message }, 'vendor rejected the API key: check its setting'),
    });
  }

  /** Replaces vendors and settings for future calls. */
  replace({ vendors, routing }: Pick<Config, 'vendors' | 'routing'>): void {
    this.vendors.replace(vendors);
    // The routes' health is kept, unless the changed settings would judge it differently.
    if (!isDeepStrictEqual(routing, this.#settings)) this.#settings = routing;
  }
}

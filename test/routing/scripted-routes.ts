import { Registry } from 'prom-client';
import type { RoutedModel } from '../../shared/catalogue/catalogue.ts';
import { createCatalogue } from '../../shared/catalogue/catalogue.ts';
import type { Model, ModelRoute } from '../../shared/catalogue/models.ts';
import { type RoutingSettings, routingDefaults } from '../../shared/config/routing-settings.ts';
import type { VendorSettings } from '../../shared/config/vendor-settings.ts';
import { findVendorRow, type VendorRow } from '../../shared/vendors/vendors.ts';
import { Router } from '../../workers/routing/router.ts';
import { VendorPool } from '../../workers/routing/vendor-pool.ts';
import type { FrameSink, VendorAnswer, VendorFrame } from '../../workers/vendors/vendor.ts';
import { createWorkerMetrics } from '../../workers/worker-metrics.ts';
import { type FixtureVendor, startFixtureVendor } from '../vendors/contracts/fixture-vendor.ts';
import { memoryFiles } from '../vendors/contracts/memory-files.ts';

/** A frame sink that keeps what it is given. */
class KeptFrames implements FrameSink {
  readonly frames: VendorFrame[] = [];

  write(frame: VendorFrame): boolean {
    this.frames.push(frame);
    return true;
  }

  drained(): Promise<void> {
    return Promise.resolve();
  }
}

/** What one job went through. */
export interface RoutedRun {
  readonly answer: Promise<VendorAnswer>;
  /** `vendor/model` of each call, in order. */
  readonly calls: string[];
  readonly frames: readonly VendorFrame[];
}

export interface RunOptions {
  readonly model?: string;
  readonly stream?: boolean;
  readonly repeatable?: boolean;
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
  readonly owner?: string;
  /** In place of the model's. */
  readonly routes?: readonly RoutedModel[];
}

/** A router over fixture vendors that speak OpenAI's wire, each under its own name. */
export class ScriptedRoutes {
  readonly router: Router;
  readonly pool: VendorPool;
  readonly registry = new Registry();
  readonly #vendors: Readonly<Record<string, VendorSettings>>;
  readonly #models: readonly Model[];

  constructor(
    servers: Readonly<Record<string, { readonly server: FixtureVendor; readonly keys?: readonly string[] }>>,
    models: readonly Model[],
    settings: Partial<RoutingSettings> = {},
    region?: string,
  ) {
    const row = findVendorRow('openai') as VendorRow;
    this.#vendors = Object.fromEntries(
      Object.entries(servers).map(([name, { server, keys = ['a-key-of-a-test'] }]) => [
        name,
        { row, baseUrl: server.baseUrl, apiKeys: keys, isOpen: false },
      ]),
    );
    this.#models = models;
    this.pool = new VendorPool(this.#vendors);
    const metrics = createWorkerMetrics(this.registry, {
      retryBudget: () => this.router.retryBalance,
      keyHealth: () => this.pool.keyHealth(),
    });
    const routing = { ...routingDefaults, ...settings };
    this.router = new Router({ pool: this.pool, settings: routing, silenceMs: 5000, region, metrics });
  }

  routes(model: string): readonly RoutedModel[] {
    return createCatalogue({ vendors: this.#vendors, models: this.#models }).routes(model, 'chat');
  }

  /** Sends a chat on its way. */
  run(options: RunOptions = {}): RoutedRun {
    const {
      model = 'model',
      stream = false,
      repeatable = true,
      owner = 'somebody',
      deadlineMs = 60_000,
      signal,
    } = options;
    const sink = new KeptFrames();
    const calls: string[] = [];
    const answer = this.router.run<VendorAnswer>({
      routes: options.routes ?? this.routes(model),
      ...{ owner, repeatable, stream, sink },
      deadlineAt: Date.now() + deadlineMs,
      signal: signal ?? new AbortController().signal,
      onCall: ({ routed }) => calls.push(`${routed.route.vendor}/${routed.route.model}`),
      call: async ({ account, routed }, { signal: callSignal, silenceMs, sink: callSink }) => {
        const { files } = memoryFiles();
        const request = '{"messages":[{"role":"user","content":"hi"}]}';
        const call = { model: routed.route.model, stream, request, signal: callSignal, silenceMs, uploads: [], files };
        return (await account.vendor.chat?.(call, callSink)) as VendorAnswer;
      },
    });
    // Whoever looks at the calls first must not be punished for it.
    answer.catch(() => undefined);
    return { answer, calls, frames: sink.frames };
  }

  settingsOf(vendor: string): VendorSettings {
    return this.#vendors[vendor] as VendorSettings;
  }

  close(): Promise<void> {
    return this.pool.close();
  }
}

/** A chat model with these routes. */
export function chatModel(routes: readonly ModelRoute[], more: Partial<Model> = {}): Model {
  return { id: 'model', created: 1, ownedBy: 'maker', capability: 'chat', routes: [...routes], ...more };
}

/** So many fixture vendors. */
export async function startServers(count: number): Promise<FixtureVendor[]> {
  return await Promise.all(Array.from({ length: count }, () => startFixtureVendor()));
}

import { hostname } from 'node:os';
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';
import type { Capability } from '../shared/capabilities/capability.ts';
import { removeWorker, reportWorker, type WorkerReport } from '../shared/queue/worker-registry.ts';
import { loopResolutionMs } from '../shared/runtime/metrics.ts';
import { version } from '../shared/runtime/version.ts';
import { versionOf } from '../shared/runtime/wire-version.ts';
import { withTimeout } from '../shared/runtime/with-timeout.ts';
import type { Routing } from './routing/routing.ts';
import type { WorkerContext } from './worker-context.ts';

const everyMs = 5000;
/** How long Redis may take to remove a stopping worker; its entry expires soon anyway. */
const removeMs = 1000;

/** Reports to operators every few seconds that this worker is alive, what it runs, and the health of its vendors. */
export class Heartbeat {
  readonly #context: WorkerContext;
  readonly #capabilities: readonly Capability[];
  readonly #routing: Routing;
  readonly #startedAt = Date.now();
  readonly #delay: IntervalHistogram;
  readonly #timer: NodeJS.Timeout;
  #cpu = process.cpuUsage();
  #cpuAt = performance.now();
  #memory = 0;
  #beating: Promise<void> | undefined;
  #isClosed = false;

  /** Starts at once. @param capabilities that it consumes */
  constructor(context: WorkerContext, capabilities: readonly Capability[], routing: Routing) {
    this.#context = context;
    this.#capabilities = capabilities;
    this.#routing = routing;
    this.#delay = monitorEventLoopDelay({ resolution: loopResolutionMs });
    this.#delay.enable();
    this.#timer = setInterval(() => this.#beat(), everyMs);
    this.#timer.unref();
    this.#beat();
  }

  /** Removes this worker from the registry. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.#delay.disable();
    const { redis, workerId } = this.#context;
    // A report under way must not arrive after the removal.
    const removed = Promise.resolve(this.#beating).then(() => removeWorker(redis, workerId));
    await withTimeout(
      removed.catch(() => undefined),
      removeMs,
    );
  }

  #beat(): void {
    // Redis may be slow or away: reports must not pile up.
    if (this.#beating !== undefined || this.#isClosed) return;
    const { redis, log } = this.#context;
    this.#beating = reportWorker(redis, this.#report())
      .catch((error) => log.warn({ err: error }, 'heartbeat failed'))
      .finally(() => {
        this.#beating = undefined;
      });
  }

  #report(): WorkerReport {
    const { workerId, config, running } = this.#context;
    const counts = running.counts();
    const lagMs = this.#delay.max / 1e6;
    this.#delay.reset();
    return {
      v: versionOf(),
      id: workerId,
      host: hostname(),
      pid: process.pid,
      version,
      region: config.region,
      startedAt: this.#startedAt,
      seenAt: Date.now(),
      load: this.#capabilities.map((capability) => ({
        capability,
        running: counts.get(capability) ?? 0,
        concurrency: config.workerConcurrency[capability],
      })),
      eventLoopLagMs: Math.round(lagMs * 10) / 10,
      cpu: this.#cpuShare(),
      memory: this.#readMemory(),
      keys: this.#routing.vendors.keyHealth(),
      routes: this.#routing.router.routeHealth(),
    };
  }

  /** As it was last, while the process has no file descriptor left to find it out by. */
  #readMemory(): number {
    try {
      this.#memory = process.memoryUsage.rss();
    } catch {}
    return this.#memory;
  }

  #cpuShare(): number {
    const now = performance.now();
    const { user, system } = process.cpuUsage(this.#cpu);
    const share = (user + system) / 1000 / Math.max(1, now - this.#cpuAt);
    this.#cpu = process.cpuUsage();
    this.#cpuAt = now;
    return Math.round(share * 1000) / 1000;
  }
}

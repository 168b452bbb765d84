import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { ApiError } from '../../shared/errors.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { loopResolutionMs } from '../../shared/runtime/metrics.ts';

/** Interval between looks at the event loop, in ms. */
const windowMs = 500;
/** Median delay above which the loop is too busy (ms): every step of every request waits as long. */
const maxDelayMs = 200;
/** Median delay above which replies are read late (ms), and for how many windows after one of them the loop counts as slow. */
const slowDelayMs = 50;
const slowWindows = 10;
/** Share of a window that a busy loop works at least; one that waits for a processor is not helped by refusing work. */
const minUse = 0.9;
/** By how many percent of requests the refused share rises with each busy window after the first one, and falls with each other one. */
const rise = 20;
const fall = 5;
/** Some requests are always accepted, so that a wrong measure never stops a process. */
const maxPercent = 90;
/** When a refused caller may retry: another process may have room sooner. */
const retryAfterMs = 2000;

/** What one window shows of the event loop. */
export interface LoopWindow {
  /** Median delay of the loop in ms. One long task, however long, does not raise it. */
  readonly medianMs: number;
  /** Share of the time in which the loop worked. */
  readonly use: number;
}

/** Measures the windows; the replaceable part. */
export type LoopMeter = () => LoopWindow;

/**
 * Refuses requests for new jobs while this process has more to do than its processor can: before their bodies are read, and
 * without asking Redis, so that a refusal costs a fraction of the work. The refused share rises while the loop stays busy and
 * falls once it does not. Health checks and running work are not affected.
 */
export class BusyLoop {
  readonly #log: Logger;
  readonly #measure: LoopMeter;
  readonly #timer: NodeJS.Timeout;
  #busyWindows = 0;
  /** Windows for which the loop still counts as slow. */
  #slowFor = 0;
  #percent = 0;
  /** Percent of the next refusal that are due. */
  #due = 0;

  constructor(log: Logger, measure: LoopMeter = openLoopMeter()) {
    this.#log = log;
    this.#measure = measure;
    this.#timer = setInterval(() => this.look(), windowMs);
    this.#timer.unref();
  }

  /** The share of requests that is refused now, in percent. */
  get refusedPercent(): number {
    return this.#percent;
  }

  /** Whether replies of other processes have lately been read late, so that a late one says nothing about them. */
  get isSlow(): boolean {
    return this.#slowFor > 0;
  }

  /** @throws ApiError 503 for the refused share of requests. */
  assertRoom(): void {
    this.#due += this.#percent;
    if (this.#due < 100) return;
    this.#due -= 100;
    throw new ApiError('service_unavailable', 'The server is overloaded. Try again later.', {
      reason: 'cpu',
      retryAfterMs,
    });
  }

  /** Looks at the window that ends now. */
  look(): void {
    const { medianMs, use } = this.#measure();
    const before = this.refusedPercent;
    this.#slowFor = medianMs > slowDelayMs ? slowWindows : Math.max(0, this.#slowFor - 1);
    if (medianMs > maxDelayMs && use >= minUse) {
      this.#busyWindows++;
      if (this.#busyWindows > 1) this.#percent = Math.min(maxPercent, this.#percent + rise);
    } else {
      this.#busyWindows = 0;
      this.#percent = Math.max(0, this.#percent - fall);
    }
    if (before === 0 && this.#percent > 0) {
      this.#log.warn({ delay_ms: Math.round(medianMs) }, 'event loop overloaded; refusing a share of new requests');
    } else if (before > 0 && this.#percent === 0) this.#log.warn('event loop no longer overloaded');
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

/** Measures this process's event loop. */
function openLoopMeter(): LoopMeter {
  const delay = monitorEventLoopDelay({ resolution: loopResolutionMs });
  delay.enable();
  let used = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, used);
    used = now;
    // Undisturbed, a sample is as long as the resolution.
    const medianMs = delay.count === 0 ? 0 : Math.max(0, delay.percentile(50) / 1e6 - loopResolutionMs);
    delay.reset();
    return { medianMs, use: utilization };
  };
}

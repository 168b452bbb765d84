import type { Counter, Gauge } from 'prom-client';
import type { Capability } from '../shared/capabilities/capability.ts';
import type { KeyHealth } from '../shared/queue/worker-registry.ts';
import { addGauge, atScrape, metricMakers, type Registry, type SecondsHistogram } from '../shared/runtime/metrics.ts';

/** Metrics of a worker process. */
export interface WorkerMetrics {
  readonly running: Gauge<'capability'>;
  /** Jobs that this worker may run at a time. */
  readonly slots: Gauge<'capability'>;
  /** From a job's creation to its first attempt. */
  readonly queueWait: SecondsHistogram<'capability'>;
  readonly jobs: Counter<'capability' | 'vendor' | 'outcome'>;
  readonly errors: Counter<'capability' | 'vendor' | 'code'>;
  readonly tokens: Counter<'vendor' | 'model' | 'kind'>;
  readonly cost: Counter<'vendor' | 'model'>;
  readonly frames: Counter<string>;
  readonly firstFrame: SecondsHistogram<'capability' | 'vendor'>;
  readonly vendorCalls: Counter<'vendor' | 'outcome'>;
  readonly vendorRetries: Counter<'vendor' | 'reason'>;
  readonly vendorPacing: Counter<'vendor' | 'outcome'>;
  readonly routeState: Gauge<'route'>;
}

/** Values that a worker measures at each scrape. */
export interface WorkerGauges {
  /** Number of retries currently allowed. */
  retryBudget(): number;
  /** Health of each vendor's keys. */
  keyHealth(): readonly KeyHealth[];
}

/** Creates the metrics of a worker process. */
export function createWorkerMetrics(registry: Registry, gauges: WorkerGauges): WorkerMetrics {
  const { counter, histogram, gauge } = metricMakers(registry);
  addGauge(registry, 'sluice_retry_budget', 'Retries of failed vendor calls that are currently allowed.', () =>
    gauges.retryBudget(),
  );
  addKeyGauge(registry, 'sluice_vendor_keys_cooling', 'API keys of a vendor that are skipped for now.', () =>
    gauges.keyHealth().map(({ vendor, cooling }) => [vendor, cooling]),
  );
  addKeyGauge(registry, 'sluice_vendor_keys_refused', 'API keys of a vendor that it refuses.', () =>
    gauges.keyHealth().map(({ vendor, refused }) => [vendor, refused]),
  );
  return {
    running: gauge('sluice_jobs_running', 'Jobs that this worker is running.', 'capability'),
    slots: gauge(
      'sluice_worker_slots',
      'Jobs that this worker may run at a time. While one account has most of them, a tenth as many of others run beside, but for videos.',
      'capability',
    ),
    queueWait: histogram(
      'sluice_queue_wait_seconds',
      'From the creation of a job to the begin of its first attempt. Not of jobs of low priority, which wait on purpose.',
      'capability',
    ),
    jobs: counter(
      'sluice_jobs_total',
      'Jobs that this worker has ended.',
      ...(['capability', 'vendor', 'outcome'] as const),
    ),
    errors: counter(
      'sluice_job_errors_total',
      'Jobs that this worker has ended with an error, by code.',
      ...(['capability', 'vendor', 'code'] as const),
    ),
    tokens: counter(
      'sluice_tokens_total',
      'Tokens of the jobs that this worker has settled; cached ones are part of the input. Unlisted models count as other.',
      ...(['vendor', 'model', 'kind'] as const),
    ),
    cost: counter(
      'sluice_cost_dollars_total',
      'Cost of the jobs that this worker has settled, as far as it is known. Unlisted models count as other.',
      ...(['vendor', 'model'] as const),
    ),
    frames: counter('sluice_frames_total', 'Frames received from vendors.'),
    firstFrame: histogram(
      'sluice_vendor_first_frame_seconds',
      'From the first call of a vendor to the first frame of the answer.',
      ...(['capability', 'vendor'] as const),
    ),
    vendorCalls: counter(
      'sluice_vendor_calls_total',
      'Calls of vendors, by outcome: answered, failed, rejected as their caller made a mistake, cancelled as the job had ended; repeated ones count again.',
      ...(['vendor', 'outcome'] as const),
    ),
    vendorRetries: counter(
      'sluice_vendor_retries_total',
      'Failed calls that another one followed, by why they failed; over_budget: none followed, for lack of allowed retries.',
      ...(['vendor', 'reason'] as const),
    ),
    vendorPacing: counter(
      'sluice_vendor_pacing_total',
      'Calls of vendors with limits, made at once or soon, and jobs parked for lack of capacity or refused because it comes too late.',
      ...(['vendor', 'outcome'] as const),
    ),
    routeState: gauge(
      'sluice_route_breaker_open',
      'Circuit breaker of a route of a listed model, once it was open: 1 open, 0.5 half open, 0 closed again.',
      'route',
    ),
  };
}

/** Adds a gauge by vendor, read at each scrape. */
function addKeyGauge(registry: Registry, name: string, help: string, read: () => (readonly [string, number])[]): void {
  const { gauge } = metricMakers(registry);
  const found = gauge(name, help, 'vendor');
  atScrape(found, () => {
    // A vendor that is no longer set up has no keys, and no alert.
    found.reset();
    for (const [vendor, keys] of read()) found.set({ vendor }, keys);
  });
}

/** Reports how many jobs of each capability this worker runs at a time. */
export function reportSlots(
  { slots, running }: WorkerMetrics,
  capabilities: readonly Capability[],
  concurrency: Readonly<Record<Capability, number>>,
): void {
  for (const capability of capabilities) {
    slots.set({ capability }, concurrency[capability]);
    running.set({ capability }, 0);
  }
}

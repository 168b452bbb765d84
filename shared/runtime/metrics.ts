import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { KeyHealth } from '../queue/worker-registry.ts';
import type { RedisClient } from '../redis/redis.ts';
import { withTimeout } from './with-timeout.ts';

export type { Registry };

/** Seconds, from a cached answer to a long reasoning run. */
const secondsBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** Metrics of every process: event-loop lag, Redis round trip, process figures. */
export function createRegistry(role: string, redis: RedisClient): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ role });
  collectDefaultMetrics({ register: registry });
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  new Gauge({
    name: 'sluice_event_loop_lag_seconds',
    help: 'Longest delay of the event loop since the last scrape.',
    registers: [registry],
    collect() {
      this.set(delay.max / 1e9);
      delay.reset();
    },
  });
  new Gauge({
    name: 'sluice_redis_lag_seconds',
    help: 'Round trip of a PING at the time of the scrape; -1 when Redis does not answer within a second.',
    registers: [registry],
    async collect() {
      this.set(await redisLag(redis));
    },
  });
  return registry;
}

/** Unhandled errors: each is a defect, and shuts the process down. */
export function createFaultCounter(registry: Registry): Counter<'kind'> {
  return new Counter({
    name: 'sluice_faults_total',
    help: 'Unhandled rejections and uncaught exceptions. Each is a defect, after which the process closes and is replaced.',
    labelNames: ['kind'],
    registers: [registry],
  });
}

/** Seconds of a PING's round trip, or -1 after a second without a reply. */
export async function redisLag(redis: RedisClient): Promise<number> {
  const started = performance.now();
  const answered = await withTimeout(
    redis.ping().catch(() => undefined),
    1000,
  );
  return answered === undefined ? -1 : (performance.now() - started) / 1000;
}

/** Metrics of an api process. */
export interface ApiMetrics {
  /** Answered requests, by endpoint and status. */
  readonly requests: Counter<'endpoint' | 'status'>;
  /** Errors by code, whether sent as a status or as a stream's last frame. */
  readonly errors: Counter<'endpoint' | 'code'>;
  readonly firstFrame: Histogram<'endpoint'>;
  readonly duration: Histogram<'endpoint'>;
  readonly frames: Counter<string>;
  /** Bytes written to connections, including response heads. */
  readonly bytes: Counter<'endpoint'>;
  /** Connections closed for exceeding limits, by reason. */
  readonly closedConnections: Counter<'reason'>;
  /** Job records written to the database; existing ones do not count. */
  readonly records: Counter<string>;
}

/** Creates the metrics of an api process. */
export function createApiMetrics(registry: Registry): ApiMetrics {
  const registers = [registry];
  return {
    requests: new Counter({
      name: 'sluice_requests_total',
      help: 'Answered requests.',
      labelNames: ['endpoint', 'status'],
      registers,
    }),
    errors: new Counter({
      name: 'sluice_errors_total',
      help: 'Errors answered, by code.',
      labelNames: ['endpoint', 'code'],
      registers,
    }),
    firstFrame: new Histogram({
      name: 'sluice_time_to_first_frame_seconds',
      help: 'From the request to the first frame of its answer.',
      labelNames: ['endpoint'],
      buckets: secondsBuckets,
      registers,
    }),
    duration: new Histogram({
      name: 'sluice_request_duration_seconds',
      help: 'From the request to the end of its answer.',
      labelNames: ['endpoint'],
      buckets: secondsBuckets,
      registers,
    }),
    frames: new Counter({ name: 'sluice_frames_delivered_total', help: 'Frames delivered to clients.', registers }),
    bytes: new Counter({
      name: 'sluice_response_bytes_total',
      help: 'Bytes written to the connections of clients.',
      labelNames: ['endpoint'],
      registers,
    }),
    closedConnections: new Counter({
      name: 'sluice_connections_cut_total',
      help: 'Connections ended for what they took: unread answers, too many of one address, or of all.',
      labelNames: ['reason'],
      registers,
    }),
    records: new Counter({
      name: 'sluice_job_records_total',
      help: 'Records of ended jobs written to the database.',
      registers,
    }),
  };
}

/** Metrics of a worker process. */
export interface WorkerMetrics {
  readonly running: Gauge<'capability'>;
  readonly jobs: Counter<'capability' | 'vendor' | 'outcome'>;
  readonly errors: Counter<'capability' | 'vendor' | 'code'>;
  readonly frames: Counter<string>;
  readonly firstFrame: Histogram<'capability' | 'vendor'>;
  readonly vendorCalls: Counter<'vendor' | 'outcome'>;
  readonly vendorRetries: Counter<'vendor' | 'reason'>;
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
  const registers = [registry];
  new Gauge({
    name: 'sluice_retry_budget',
    help: 'Retries that are allowed at the moment.',
    registers,
    collect() {
      this.set(gauges.retryBudget());
    },
  });
  new Gauge({
    name: 'sluice_vendor_keys_cooling',
    help: 'Keys of a vendor that are left alone for now.',
    labelNames: ['vendor'],
    registers,
    collect() {
      for (const { vendor, cooling } of gauges.keyHealth()) this.set({ vendor }, cooling);
    },
  });
  new Gauge({
    name: 'sluice_vendor_keys_refused',
    help: 'Keys of a vendor that it refuses.',
    labelNames: ['vendor'],
    registers,
    collect() {
      for (const { vendor, refused = 0 } of gauges.keyHealth()) this.set({ vendor }, refused);
    },
  });
  return {
    running: new Gauge({
      name: 'sluice_jobs_running',
      help: 'Jobs this worker is running.',
      labelNames: ['capability'],
      registers,
    }),
    jobs: new Counter({
      name: 'sluice_jobs_total',
      help: 'Jobs this worker ended.',
      labelNames: ['capability', 'vendor', 'outcome'],
      registers,
    }),
    errors: new Counter({
      name: 'sluice_job_errors_total',
      help: 'Jobs that failed, by code.',
      labelNames: ['capability', 'vendor', 'code'],
      registers,
    }),
    frames: new Counter({ name: 'sluice_frames_total', help: 'Frames taken from vendors.', registers }),
    firstFrame: new Histogram({
      name: 'sluice_vendor_first_frame_seconds',
      help: 'From the call of a vendor to its first frame.',
      labelNames: ['capability', 'vendor'],
      buckets: secondsBuckets,
      registers,
    }),
    vendorCalls: new Counter({
      name: 'sluice_vendor_calls_total',
      help: 'Calls of vendors, by how they ended; repeated ones count again.',
      labelNames: ['vendor', 'outcome'],
      registers,
    }),
    vendorRetries: new Counter({
      name: 'sluice_vendor_retries_total',
      help: 'Failed calls that were followed by another, by why they failed; "over budget": by none, for want of allowance.',
      labelNames: ['vendor', 'reason'],
      registers,
    }),
    routeState: new Gauge({
      name: 'sluice_route_breaker_open',
      help: 'Circuit breaker of a route: 1 open, 0.5 half open, 0 closed (again).',
      labelNames: ['route'],
      registers,
    }),
  };
}

import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { RedisClient } from './redis.ts';
import { within } from './within.ts';

export type { Registry };

/** Seconds, from a cached answer to a long reasoning run. */
const secondsBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** Metrics that every process has: event-loop lag, Redis round trip, process figures. */
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

/** Seconds of a PING's round trip, or -1 after a second without an answer. */
export async function redisLag(redis: RedisClient): Promise<number> {
  const started = performance.now();
  const answered = await within(
    redis.ping().catch(() => undefined),
    1000,
  );
  return answered === undefined ? -1 : (performance.now() - started) / 1000;
}

/** What an api process counts. */
export interface ApiMetrics {
  /** Answered requests, by endpoint and status. */
  readonly requests: Counter<'endpoint' | 'status'>;
  /** Errors, by code, whether they were a status or the last frame of a stream. */
  readonly errors: Counter<'endpoint' | 'code'>;
  readonly firstFrame: Histogram<'endpoint'>;
  readonly duration: Histogram<'endpoint'>;
  readonly frames: Counter<string>;
  /** Job records written to the database; one that was there already does not count. */
  readonly records: Counter<string>;
}

/** The numbers of an api process. */
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
    records: new Counter({
      name: 'sluice_job_records_total',
      help: 'Records of ended jobs written to the database.',
      registers,
    }),
  };
}

/** What a worker process counts. */
export interface WorkerMetrics {
  readonly running: Gauge<'capability'>;
  readonly jobs: Counter<'capability' | 'vendor' | 'outcome'>;
  readonly errors: Counter<'capability' | 'vendor' | 'code'>;
  readonly frames: Counter<string>;
  readonly firstFrame: Histogram<'capability' | 'vendor'>;
}

/** The numbers of a worker process. */
export function createWorkerMetrics(registry: Registry): WorkerMetrics {
  const registers = [registry];
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
  };
}

import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { rightsKey } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { isRefusal } from '../redis/script.ts';
import { Exemplars } from './exemplars.ts';
import { version } from './version.ts';
import { countUnread } from './wire-version.ts';
import { withTimeout } from './with-timeout.ts';

export type { Registry };

/** Seconds, from a cached answer to a job of the longest deadline. */
export const secondsBuckets = [
  ...[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200],
];

/** How often the delay of the event loop is sampled, in ms: each sample wakes the process. */
export const loopResolutionMs = 20;

/** How long a scrape waits for one value that comes from Redis or the database, in ms. */
const readMs = 1000;

/**
 * Adds a gauge without labels whose value is read at each scrape. It is NaN if the read fails or takes more than a second: a
 * scrape neither fails nor hangs with what it reports on.
 */
export function addGauge(
  registry: Registry,
  name: string,
  help: string,
  read: () => number | Promise<number | undefined>,
): void {
  new Gauge({
    name,
    help,
    registers: [registry],
    async collect() {
      this.set((await readInTime(read)) ?? Number.NaN);
    },
  });
}

/**
 * Shows a counter's samples from the start. Prometheus sees no increase in a sample that appears with its first events: if they
 * all fall between two scrapes, no alert on them would fire.
 */
export function startAtZero<Label extends string>(
  counter: Counter<Label>,
  label: Label,
  values: readonly string[],
): void {
  for (const value of values) counter.inc({ [label]: value } as Record<Label, string>, 0);
}

/** Has a gauge's values read at each scrape. */
export function atScrape<Label extends string>(gauge: Gauge<Label>, collect: () => void | Promise<void>): void {
  Object.assign(gauge, { collect });
}

/** Waits a second for a value of a scrape; undefined if it is not there by then. */
export async function readInTime<Value>(
  read: () => Value | Promise<Value | undefined>,
): Promise<Awaited<Value> | undefined> {
  try {
    return (await withTimeout(Promise.resolve(read()), readMs)) as Awaited<Value> | undefined;
  } catch {
    return undefined;
  }
}

/** The metrics of a process; with the exemplars of its histograms if it has a tracer. */
export class ProcessRegistry extends Registry {
  readonly exemplars: Exemplars | undefined;

  constructor(isTraced: boolean) {
    super();
    this.exemplars = isTraced ? new Exemplars(secondsBuckets) : undefined;
  }
}

/** Metrics of every process: its build, event-loop lag, Redis round trip, process figures. */
export function createRegistry(role: string, redis: RedisClient, { isTraced = false } = {}): ProcessRegistry {
  const registry = new ProcessRegistry(isTraced);
  registry.setDefaultLabels({ role });
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: loopResolutionMs });
  const delay = monitorEventLoopDelay({ resolution: loopResolutionMs });
  delay.enable();
  new Gauge({
    name: 'sluice_event_loop_lag_seconds',
    help: 'Longest delay of the event loop since the last scrape, in seconds.',
    registers: [registry],
    collect() {
      this.set(delay.max / 1e9);
      delay.reset();
    },
  });
  new Gauge({
    name: 'sluice_redis_lag_seconds',
    help: 'Round trip of a write of nothing to Redis at the time of the scrape; -1: no answer within a second, or it takes no writes.',
    registers: [registry],
    async collect() {
      this.set(await redisLag(redis));
    },
  });
  new Gauge({
    name: 'sluice_build_info',
    help: 'Always 1; its labels are the version of the gateway and of Node.',
    labelNames: ['version', 'node'],
    registers: [registry],
  }).set({ version, node: process.version }, 1);
  countUnread(registry);
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

/** Returns what counts a frame of an account that has taken its rate, see `AccountBandwidth`. */
export function createPacedFrames(registry: Registry): () => void {
  const paced = metricMakers(registry).counter(
    'sluice_frames_paced_total',
    'Large frames, or pages of logs, of an account that had taken its rate while the process served others: the next one waited.',
  );
  return () => paced.inc();
}

/** Seconds of the round trip of a write, or -1 if Redis does not take it within `ms`. */
export async function redisLag(redis: RedisClient, ms = readMs): Promise<number> {
  const started = performance.now();
  return (await redisState(redis, ms)) === 'ok' ? (performance.now() - started) / 1000 : -1;
}

/**
 * Whether Redis takes work: `refusing` is one that answers and takes no writes for now, such as a replica, one whose disk is full
 * or one without its replicas; `unavailable` is one without an answer within `ms`.
 */
export async function redisState(redis: RedisClient, ms = readMs): Promise<'ok' | 'refusing' | 'unavailable'> {
  // It writes nothing, as there is no such key, and is refused as any write is.
  const asked = redis.set(rightsKey, '', 'XX').then(
    () => 'ok' as const,
    (error) => (isRefusal(error) ? ('refusing' as const) : ('unavailable' as const)),
  );
  return (await withTimeout(asked, ms)) ?? 'unavailable';
}

/** A histogram of seconds. */
export class SecondsHistogram<Label extends string> {
  readonly #name: string;
  readonly #histogram: Histogram<Label>;
  readonly #exemplars: Exemplars | undefined;

  constructor(registry: Registry, name: string, help: string, labelNames: Label[]) {
    this.#name = name;
    this.#histogram = new Histogram({ name, help, labelNames, buckets: secondsBuckets, registers: [registry] });
    this.#exemplars = registry instanceof ProcessRegistry ? registry.exemplars : undefined;
  }

  /** @param traceId of the trace that the observed work belongs to, if there is one */
  observe(labels: Record<Label, string>, seconds: number, traceId?: string): void {
    this.#histogram.observe(labels, seconds);
    if (traceId !== undefined) this.#exemplars?.note(this.#name, labels, seconds, traceId);
  }
}

/** Makers of a process's metrics: each is described in docs/metrics.md. */
export interface MetricMakers {
  counter<Label extends string>(name: string, help: string, ...labelNames: Label[]): Counter<Label>;
  /** Of seconds. */
  histogram<Label extends string>(name: string, help: string, ...labelNames: Label[]): SecondsHistogram<Label>;
  gauge<Label extends string>(name: string, help: string, ...labelNames: Label[]): Gauge<Label>;
}

/** The makers of a registry. */
export function metricMakers(registry: Registry): MetricMakers {
  const registers = [registry];
  return {
    counter: (name, help, ...labelNames) => new Counter({ name, help, labelNames, registers }),
    histogram: (name, help, ...labelNames) => new SecondsHistogram(registry, name, help, labelNames),
    gauge: (name, help, ...labelNames) => new Gauge({ name, help, labelNames, registers }),
  };
}

/** Metrics of an api process. */
export interface ApiMetrics {
  /** Answered requests, by endpoint and status; without probes and scrapes. */
  readonly requests: Counter<'endpoint' | 'status'>;
  /** Errors by code, whether sent as a status or as a stream's last frame. */
  readonly errors: Counter<'endpoint' | 'code'>;
  /** The 429 and 503 among them, by what they are due to. */
  readonly refusals: Counter<'endpoint' | 'reason'>;
  /** Answered requests that asked for a cached answer, by the result that their header says. */
  readonly cachedAnswers: Counter<'endpoint' | 'result'>;
  readonly singleFlights: Counter<'endpoint' | 'result'>;
  /** Verdicts of admissions. */
  readonly admissions: Counter<'capability' | 'verdict'>;
  readonly firstFrame: SecondsHistogram<'endpoint' | 'stream'>;
  readonly duration: SecondsHistogram<'endpoint'>;
  readonly frames: Counter<string>;
  readonly openStreams: Gauge<string>;
  /** Bytes written to connections, including response heads. */
  readonly bytes: Counter<'endpoint'>;
  /** Connections closed for exceeding limits, by reason. */
  readonly closedConnections: Counter<'reason'>;
  /** Job records written to the database; existing ones do not count. */
  readonly records: Counter<string>;
  /** Holds that the sweeper acted on, by what it did. */
  readonly swept: Counter<'action'>;
}

/** Creates the metrics of an api process. */
export function createApiMetrics(registry: Registry): ApiMetrics {
  const { counter, histogram, gauge } = metricMakers(registry);
  return {
    requests: counter(
      'sluice_requests_total',
      'Answered requests, without probes and scrapes. A stream counts when it ends.',
      ...(['endpoint', 'status'] as const),
    ),
    errors: counter(
      'sluice_errors_total',
      "Errors answered, by code, also those that end a stream. Of the gateway's and its vendors' making: 5xx codes.",
      ...(['endpoint', 'code'] as const),
    ),
    refusals: counter(
      'sluice_refusals_total',
      'Errors with status 429 or 503, by what they are due to.',
      ...(['endpoint', 'reason'] as const),
    ),
    admissions: counter(
      'sluice_admissions_total',
      'Requests that reached admission, by its verdict.',
      ...(['capability', 'verdict'] as const),
    ),
    cachedAnswers: counter(
      'sluice_answer_cache_total',
      'Answered requests that X-Sluice-Cache or their key lets have cached answers, by result: hit, miss or bypass. A hit has no job of its own.',
      ...(['endpoint', 'result'] as const),
    ),
    singleFlights: counter(
      'sluice_single_flight_total',
      'Answered requests that share their job with identical ones at once, by result: first made the job, joined has none of its own, bypass is not shared.',
      ...(['endpoint', 'result'] as const),
    ),
    firstFrame: histogram(
      'sluice_time_to_first_frame_seconds',
      'From the creation of a job to the first frame of its answer at its api; of an answer that is not streamed: to all of it. Not of jobs of low priority, which wait on purpose.',
      ...(['endpoint', 'stream'] as const),
    ),
    duration: histogram('sluice_request_duration_seconds', 'From a request to the end of its answer.', 'endpoint'),
    frames: counter('sluice_frames_delivered_total', 'Frames delivered to clients.'),
    openStreams: gauge(
      'sluice_streams_open',
      'Streamed answers that clients of this process are reading or waiting for.',
    ),
    bytes: counter('sluice_response_bytes_total', 'Bytes written to the connections of clients.', 'endpoint'),
    closedConnections: counter(
      'sluice_connections_cut_total',
      'Connections closed for exceeding a limit: unread answers, too many of one address, or of all.',
      'reason',
    ),
    records: counter('sluice_job_records_total', 'Records of ended jobs written to the database.'),
    swept: counter(
      'sluice_jobs_swept_total',
      'Jobs that the sweeper settled, ended or queued again because no other process did.',
      'action',
    ),
  };
}

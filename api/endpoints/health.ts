import type { Middleware } from 'koa';
import { Gauge } from 'prom-client';
import { capabilities } from '../../shared/capabilities/capability.ts';
import type { Config } from '../../shared/config/config.ts';
import { ApiError } from '../../shared/errors.ts';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import { outboxLag } from '../../shared/jobs/settlement/outbox.ts';
import type { CapabilityQueue, QueueDepth } from '../../shared/queue/queue.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import type { Registry } from '../../shared/runtime/metrics.ts';
import { redisLag } from '../../shared/runtime/metrics.ts';
import type { Scrapes } from '../../shared/runtime/metrics-access.ts';
import { mayReadMetrics } from '../../shared/runtime/metrics-access.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';
import type { LoadGauge } from '../admission/load-gauge.ts';
import type { BodyShares } from '../bounds/body-shares.ts';
import type { Connections } from '../bounds/connections.ts';
import type { DiskFloor } from '../bounds/disk-floor.ts';
import type { DatabaseHealth } from '../ledger/database-health.ts';
import type { RedisWatch } from '../ledger/redis-watch.ts';
import type { Handover } from '../replies/client-connection.ts';
import type { State } from '../state.ts';

/** Dependencies of health checks and metrics. */
export interface HealthDependencies {
  readonly redis: RedisClient;
  readonly config: Config;
  readonly scrapes: Scrapes;
  readonly registry: Registry;
  readonly queue: (capability: JobIdentity['capability']) => CapabilityQueue;
  readonly database: DatabaseHealth;
  readonly watch: Pick<RedisWatch, 'isBehind'>;
  readonly handover: Handover;
  readonly connections: Connections;
  readonly bodies: BodyShares;
  readonly uploads: BodyShares;
  readonly disk: DiskFloor;
  readonly load: LoadGauge;
}

/** Paths of the liveness check: the common ones, and those of other gateways that tools use. */
export const livenessPaths = ['/healthz', '/health', '/health/liveliness', '/health/liveness'] as const;
/** Paths of the readiness check. */
export const readinessPaths = ['/readyz', '/health/readiness'] as const;

/** `GET /healthz`: the process is alive. */
export const healthz: Middleware<State> = (ctx) => {
  ctx.state.endpoint = 'healthz';
  ctx.body = { status: 'ok' };
};

/**
 * `GET /readyz`: 200 while it can take requests, else 503 with what is missing. Without the database it takes those of known
 * keys, and is degraded: if it was not ready, load balancers would take every api process out for that.
 */
export function readyz(services: HealthDependencies, isClosing: () => boolean): Middleware<State> {
  return async (ctx) => {
    ctx.state.endpoint = 'readyz';
    const [lag, isDatabaseThere] = await Promise.all([redisLag(services.redis), services.database.isThere()]);
    const behind = services.watch.isBehind ? 'behind' : 'ok';
    const checks = {
      redis: lag >= 0 ? behind : 'unavailable',
      database: isDatabaseThere ? 'ok' : 'unavailable',
      accepting: isClosing() ? 'closing' : 'ok',
    };
    const isReady = checks.redis === 'ok' && checks.accepting === 'ok';
    ctx.status = isReady ? 200 : 503;
    ctx.body = { status: isReady ? (isDatabaseThere ? 'ok' : 'degraded') : 'unavailable', checks };
  };
}

/**
 * `GET /metrics`, for Prometheus. Adds metrics that only api processes export: the queues, with equal values in each.
 * @throws ApiError 403 for unauthorized readers, 404 if metrics have a separate port.
 */
export function metrics(services: HealthDependencies): Middleware<State> {
  registerQueueMetrics(services);
  registerOutboxMetrics(services);
  registerDatabaseMetric(services);
  registerBoundsMetrics(services);
  const { metricsPort, metricsToken } = services.config;
  return async (ctx) => {
    ctx.state.endpoint = 'metrics';
    if (metricsPort !== undefined) throw new ApiError('not_found', `Unknown path: ${ctx.method} ${ctx.path}`);
    if (!mayReadMetrics(ctx.req, metricsToken)) {
      throw new ApiError(
        'permission_denied',
        'Metrics are read from this machine, or with METRICS_TOKEN as bearer token.',
      );
    }
    ctx.type = services.scrapes.contentType;
    ctx.body = await services.scrapes.read();
  };
}

function registerQueueMetrics(services: HealthDependencies): void {
  const gauge = (name: string, help: string, value: (depth: QueueDepth) => number): void => {
    new Gauge({
      name,
      help,
      labelNames: ['capability'],
      registers: [services.registry],
      async collect() {
        for (const capability of capabilities) {
          // A scrape must not hang on an unavailable Redis.
          const depth = await withTimeout(services.queue(capability).depth(), 1000);
          if (depth !== undefined) this.set({ capability }, value(depth));
        }
      },
    });
  };
  gauge('sluice_queue_waiting', 'Jobs that wait for a worker.', (depth) => depth.waiting);
  gauge('sluice_queue_active', 'Jobs that workers have taken.', (depth) => depth.active);
  gauge(
    'sluice_queue_oldest_wait_seconds',
    'How long the oldest waiting job has waited.',
    (depth) => depth.oldestWaitMs / 1000,
  );
  new Gauge({
    name: 'sluice_queue_delayed',
    help: 'Videos between two polls. They wait for a time and for a worker, without which none returns to its queue.',
    labelNames: ['capability'],
    registers: [services.registry],
    async collect() {
      const delayed = await withTimeout(services.queue('video').delayed(), 1000);
      if (delayed !== undefined) this.set({ capability: 'video' }, delayed);
    },
  });
  new Gauge({
    name: 'sluice_requests_running',
    help: 'Requests under way in this process.',
    registers: [services.registry],
    collect() {
      this.set(services.handover.size);
    },
  });
}

/** The ledger's backlog, which all api processes see alike. */
function registerOutboxMetrics({ redis, registry }: HealthDependencies): void {
  const gauge = (name: string, help: string, value: (lag: Awaited<ReturnType<typeof outboxLag>>) => number): void => {
    new Gauge({
      name,
      help,
      registers: [registry],
      async collect() {
        const lag = await withTimeout(outboxLag(redis), 1000);
        if (lag !== undefined) this.set(value(lag));
      },
    });
  };
  gauge('sluice_outbox_records', 'Job records that are not in the database yet.', (lag) => lag.records);
  gauge('sluice_outbox_oldest_seconds', 'Age of the oldest of them.', (lag) => lag.oldestMs / 1000);
}

/** Whether the database is there, without which a process is ready, too. */
function registerDatabaseMetric({ registry, database }: HealthDependencies): void {
  new Gauge({
    name: 'sluice_database_up',
    help: 'Whether the database answers (1 or 0).',
    registers: [registry],
    async collect() {
      this.set((await database.isThere()) ? 1 : 0);
    },
  });
}

/** What callers take of this process, and what is left of what it stands on. */
function registerBoundsMetrics({ registry, connections, bodies, uploads, disk, load }: HealthDependencies): void {
  const gauge = (name: string, help: string, value: () => number): void => {
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(value());
      },
    });
  };
  gauge('sluice_connections_open', 'Connections to this process.', () => connections.size);
  gauge('sluice_unsent_bytes', 'Bytes that wait for clients to take them.', () => connections.unsent);
  gauge('sluice_bodies_bytes', 'Bytes of requests that are being read or queued.', () => bodies.total);
  gauge('sluice_uploads_bytes', 'Bytes of forms that are being read or queued.', () => uploads.total);
  gauge('sluice_data_free_bytes', 'Free space where the data folder lies.', () => disk.free);
  gauge('sluice_redis_maxmemory_bytes', 'Memory that Redis may use; 0: it has no limit.', () => load.memory.limit);
  gauge('sluice_redis_memory_share', 'How much of it, or of its machine, is used.', () => load.memory.share);
}

import type { Middleware } from 'koa';
import type { Config } from '../../shared/config/config.ts';
import { ApiError } from '../../shared/errors.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import { redisState } from '../../shared/runtime/metrics.ts';
import type { Scrapes } from '../../shared/runtime/metrics-access.ts';
import { mayReadMetrics } from '../../shared/runtime/metrics-access.ts';
import type { BusyLoop } from '../bounds/busy-loop.ts';
import type { DatabaseHealth } from '../ledger/database-health.ts';
import type { RedisWatch } from '../ledger/redis-watch.ts';
import type { State } from '../state.ts';

/** Dependencies of health checks and metrics. */
export interface HealthDependencies {
  readonly redis: RedisClient;
  readonly config: Config;
  readonly scrapes: Scrapes;
  readonly database: DatabaseHealth;
  readonly watch: Pick<RedisWatch, 'isBehind'>;
  readonly busyLoop: Pick<BusyLoop, 'isSlow'>;
}

/** How long Redis may take to reply to a readiness check, in ms: usually, and while the event loop is too busy to read replies in time. */
const replyMs = 1000;
const busyReplyMs = 5000;

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
    const waitMs = services.busyLoop.isSlow ? busyReplyMs : replyMs;
    const asking = redisState(services.redis, waitMs);
    const [redis, database] = await Promise.all([asking, services.database.state()]);
    const checks = {
      redis: redis === 'ok' && services.watch.isBehind ? 'behind' : redis,
      database,
      accepting: isClosing() ? 'closing' : 'ok',
    };
    const isReady = checks.redis === 'ok' && checks.accepting === 'ok';
    ctx.status = isReady ? 200 : 503;
    ctx.body = { status: isReady ? (database === 'ok' ? 'ok' : 'degraded') : 'unavailable', checks };
  };
}

/**
 * `GET /metrics`, for Prometheus.
 * @throws ApiError 403 for unauthorized readers, 404 if metrics have a separate port.
 */
export function metrics(services: HealthDependencies): Middleware<State> {
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
    const { text, contentType } = await services.scrapes.read(ctx.req);
    ctx.type = contentType;
    ctx.body = text;
  };
}

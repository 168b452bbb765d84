import type { Middleware } from 'koa';
import { listWorkers, type RouteHealth, type WorkerReport } from '../../../shared/queue/worker-registry.ts';
import type { RedisClient } from '../../../shared/redis/redis.ts';
import { BoundedReads, readMs } from '../../bounds/bounded-reads.ts';
import type { State } from '../../state.ts';
import { wholeList } from './whole-list.ts';

/** Reads the running workers. @throws ApiError 503 when Redis does not respond in time. */
export type ReadWorkers = () => Promise<WorkerReport[]>;

export function workerReader({ redis }: { readonly redis: RedisClient }): ReadWorkers {
  const reads = new BoundedReads(readMs, 'The workers cannot be read for now.', 'queue_unavailable');
  return () => reads.read(() => listWorkers(redis));
}

/** `GET /admin/v1/workers`: the running worker processes with what they run. Times are ms since 1970. */
export function listSeenWorkers(read: ReadWorkers): Middleware<State> {
  return async (ctx) => {
    ctx.state.endpoint = 'admin.workers';
    ctx.body = wholeList((await read()).map(workerView));
  };
}

function workerView(worker: WorkerReport): Record<string, unknown> {
  const { load } = worker;
  return {
    id: worker.id,
    host: worker.host,
    pid: worker.pid,
    version: worker.version,
    region: worker.region ?? null,
    started_at: worker.startedAt,
    seen_at: worker.seenAt,
    capabilities: load.map(({ capability }) => capability),
    running: Object.fromEntries(load.map(({ capability, running }) => [capability, running])),
    concurrency: Object.fromEntries(load.map(({ capability, concurrency }) => [capability, concurrency])),
    event_loop_lag_ms: worker.eventLoopLagMs,
    cpu: worker.cpu,
    memory: worker.memory,
    vendors: worker.keys.map(({ vendor, keys, cooling }) => ({ vendor, keys, cooling_keys: cooling })),
    routes: worker.routes.map(routeView),
  };
}

/** A route's health, as shown to operators. */
export function routeView({ route, state, failedInARow, lastError }: RouteHealth): Record<string, unknown> {
  const error = lastError && { code: lastError.code, status: lastError.status ?? null, at: lastError.at };
  return { route, state, failed_in_a_row: failedInARow, last_error: error ?? null };
}

import type { Middleware } from 'koa';
import type { Logger } from '../../shared/log.ts';
import type { ApiMetrics } from '../../shared/metrics.ts';
import type { Context, State } from '../state.ts';

/** One structured line and the counters of every request, once its answer is complete. */
export function accessLog(log: Logger, metrics: ApiMetrics): Middleware<State> {
  return async (ctx, next) => {
    await next();
    // An answer that was held is sent when this returns, and its caller need not wait for the line.
    setImmediate(() => recordRequest({ log, metrics }, ctx, ctx.respond === false ? ctx.res.statusCode : ctx.status));
  };
}

/** Logs and counts one request. A turn on a socket is one, too: `status` is what it would have been answered over HTTP. */
export function recordRequest(
  { log, metrics }: { readonly log: Logger; readonly metrics: ApiMetrics },
  ctx: Context,
  status: number,
): void {
  const { endpoint, startedAt, streamError, facts, jobId, caller } = ctx.state;
  const milliseconds = performance.now() - startedAt;
  metrics.requests.inc({ endpoint, status: String(status) });
  metrics.duration.observe({ endpoint }, milliseconds / 1000);
  if (streamError !== undefined) metrics.errors.inc({ endpoint, code: streamError.code });
  const line = {
    job: jobId,
    method: ctx.method,
    path: ctx.path,
    status,
    ms: Math.round(milliseconds * 10) / 10,
    endpoint,
    account: caller?.account,
    key: caller?.apiKeyId,
    error: streamError?.code,
  };
  log.info(Object.assign(line, facts), 'request');
}

import type { Middleware } from 'koa';
import type { Logger } from '../../shared/log.ts';
import type { ApiMetrics } from '../../shared/metrics.ts';
import type { State } from '../state.ts';

/** One structured line and the counters of every request, once its answer is complete. */
export function accessLog(log: Logger, metrics: ApiMetrics): Middleware<State> {
  return async (ctx, next) => {
    await next();
    const { endpoint, startedAt, streamError, facts, jobId, caller } = ctx.state;
    const milliseconds = performance.now() - startedAt;
    const status = ctx.respond === false ? ctx.res.statusCode : ctx.status;
    metrics.requests.inc({ endpoint, status: String(status) });
    metrics.duration.observe({ endpoint }, milliseconds / 1000);
    if (streamError !== undefined) metrics.errors.inc({ endpoint, code: streamError.code });
    log.info(
      {
        job: jobId,
        method: ctx.method,
        path: ctx.path,
        status,
        ms: Math.round(milliseconds * 10) / 10,
        endpoint,
        ...(caller === undefined ? {} : { account: caller.account, key: caller.apiKeyId }),
        ...facts,
        ...(streamError === undefined ? {} : { error: streamError.code }),
      },
      'request',
    );
  };
}

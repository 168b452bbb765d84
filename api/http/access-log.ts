import type { ServerResponse } from 'node:http';
import type { Middleware } from 'koa';
import { type Logger, withoutIds } from '../../shared/runtime/log.ts';
import type { ApiMetrics } from '../../shared/runtime/metrics.ts';
import type { Context, State } from '../state.ts';

/** Writes one structured log line and the counters of every request, once its response is complete. */
export function accessLog(log: Logger, metrics: ApiMetrics): Middleware<State> {
  return async (ctx, next) => {
    const { socket } = ctx.req;
    const bytesBefore = socket.bytesWritten;
    await next();
    afterSending(ctx.res, () => {
      const { facts, endpoint } = ctx.state;
      facts.bytes = socket.bytesWritten - bytesBefore;
      metrics.bytes.inc({ endpoint }, facts.bytes);
      recordRequest({ log, metrics }, ctx, ctx.respond === false ? ctx.res.statusCode : ctx.status);
    });
  };
}

/** Calls back once a response is sent or its client has disconnected. Without a connection it calls back at once. */
function afterSending(response: ServerResponse, listener: () => void): void {
  if (response.socket === null || response.closed) setImmediate(listener);
  else response.once('close', listener);
}

/** Logs and counts one request. `status` of a socket request is the one that it would have over HTTP. */
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
    path: loggedPath(ctx),
    status,
    ms: Math.round(milliseconds * 10) / 10,
    endpoint,
    account: caller?.account,
    key: caller?.apiKeyId,
    error: streamError?.code,
  };
  log.info(Object.assign(line, facts), 'request');
}

/** Paths of results. Their ids are not logged, valid or not, because a link contains one. */
const results = /\/results\//i;

/** Matches what `withoutIds` removes. Few paths do, so one test replaces two rewrites. */
const mayHoldId = /\d{10}|signature=/i;

/** The path without the ids of files. */
function loggedPath({ path }: Context): string {
  if (results.test(path)) return '/results/[file]';
  return mayHoldId.test(path) ? withoutIds(path) : path;
}

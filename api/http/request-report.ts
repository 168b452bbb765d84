import type { ServerResponse } from 'node:http';
import type { Middleware } from 'koa';
import type { ApiError } from '../../shared/errors.ts';
import { newJobId } from '../../shared/ids.ts';
import type { Served } from '../../shared/jobs/job-state.ts';
import { formatDollars } from '../../shared/money/cost.ts';
import { type Logger, logEvent, withoutIds } from '../../shared/runtime/log.ts';
import type { ApiMetrics } from '../../shared/runtime/metrics.ts';
import { traceIdOf } from '../../shared/tracing/trace-context.ts';
import type { Context, State } from '../state.ts';

/**
 * Gives every request an id, sent as `x-request-id`: `req_x`, until it has made the job `job_x` (see `nameJob`). A refused
 * request keeps the first form: it has no job.
 */
export const requestId: Middleware<State> = (ctx, next) => {
  ctx.state.jobId = newJobId();
  ctx.state.startedAt = performance.now();
  ctx.state.endpoint = 'other';
  ctx.state.facts = {};
  ctx.state.headers = { 'x-request-id': `req_${ctx.state.jobId}` };
  const own = ctx.req.headers['x-client-request-id'] ?? ctx.req.headers['x-request-id'];
  if (own !== undefined) noteOwnId(ctx, String(own));
  return next();
};

/** What a caller's own id may be: short, on one line, and no API key that went into the wrong header. */
const ownId = /^(?!sk-)[\w.:+/=-]{1,128}$/;

/** Logs a caller's own id of a request (or its proxy's), and sends it back, so that both logs can be joined. */
function noteOwnId({ state }: Context, id: string): void {
  if (!ownId.test(id)) return;
  state.facts.client_request = withoutIds(id);
  state.headers['x-client-request-id'] = id;
}

/** Puts the id of the job, made or found, into the headers of the response. */
export function nameJob({ state: { headers } }: Pick<Context, 'state'>, jobId: string): void {
  const id = `job_${jobId}`;
  headers['x-request-id'] = id;
  if (headers['request-id'] !== undefined) headers['request-id'] = id;
}

/**
 * Reports in the response's headers, and in the access log, the vendor, the number of calls, the cost if it is known in
 * time, and the ignored fields.
 */
export function showServed({ state }: Pick<Context, 'state'>, { vendor, calls, model, cost }: Served): void {
  state.facts.vendor = vendor;
  state.facts.calls = calls;
  if (model !== undefined) state.facts.served_model = model;
  const dollars = state.isFree ? '0' : cost === undefined ? undefined : formatDollars(cost);
  if (dollars !== undefined) state.facts.cost = dollars;
  const { headers } = state;
  headers['x-sluice-vendor'] = vendor;
  headers['x-sluice-attempts'] = String(calls);
  if (dollars !== undefined) headers['x-sluice-cost'] = dollars;
  // An operator may give a model a name that headers do not allow.
  if (model !== undefined) headers['x-sluice-model'] = encodeURI(model);
  const ignored = state.ignored?.get(serverName(vendor, model));
  if (ignored) headers['x-sluice-ignored'] = ignored;
}

/** Who serves a request: a vendor, and the fallback model if one is used. */
export function serverName(vendor: string, standIn: string | undefined): string {
  return standIn === undefined ? vendor : `${vendor} ${standIn}`;
}

/** The limits in force: unfinished jobs of the API key, their maximum, and its limits per minute. */
export interface Limits {
  readonly running: number;
  /** Undefined if it was not checked. */
  readonly concurrency: number | undefined;
  readonly requests: number | undefined;
  readonly tokens: number | undefined;
  /** As of `AdmitReply`. */
  readonly left: string;
}

/**
 * The key's limits per minute under OpenAI's names. Without a limit on requests, the one on unfinished jobs is shown: a slot
 * is free again when one of them ends.
 */
export function limitHeaders({ running, concurrency, requests, tokens, left }: Limits): Record<string, string> {
  const [leftRequests = '-', requestsMs, leftTokens = '-', tokensMs] = left.split(' ');
  const headers: Record<string, string> = {};
  if (requests !== undefined && leftRequests !== '-') {
    headers['x-ratelimit-limit-requests'] = String(requests);
    headers['x-ratelimit-remaining-requests'] = leftRequests;
    headers['x-ratelimit-reset-requests'] = durationText(requestsMs);
  } else if (concurrency !== undefined) {
    headers['x-ratelimit-limit-requests'] = String(concurrency);
    headers['x-ratelimit-remaining-requests'] = String(Math.max(0, concurrency - running));
    headers['x-ratelimit-reset-requests'] = '1s';
  }
  if (tokens === undefined || leftTokens === '-') return headers;
  headers['x-ratelimit-limit-tokens'] = String(tokens);
  headers['x-ratelimit-remaining-tokens'] = leftTokens;
  headers['x-ratelimit-reset-tokens'] = durationText(tokensMs);
  return headers;
}

/** Milliseconds in OpenAI's format of durations: `6m0s`, `1.5s`, `20ms`. */
function durationText(milliseconds: string | undefined): string {
  const ms = Math.ceil(Number(milliseconds ?? 0));
  if (ms < 1000) return `${ms}ms`;
  const [minutes, seconds] = [Math.floor(ms / 60_000), (ms % 60_000) / 1000];
  return minutes === 0 ? `${seconds}s` : `${minutes}m${seconds}s`;
}

/** Milliseconds of a text in that format. */
function millisecondsOf(duration = '0ms'): number {
  const [, minutes = '0', amount = '0', unit] = /^(?:(\d+)m(?!s))?([\d.]+)(m?s)$/.exec(duration) ?? [];
  return Number(minutes) * 60_000 + Number(amount) * (unit === 'ms' ? 1 : 1000);
}

/**
 * The limits of `limitHeaders` under Anthropic's names, whose resets are points in time
 * (https://platform.claude.com/docs/en/api/rate-limits#response-headers).
 */
export function anthropicLimitHeaders(headers: Readonly<Record<string, unknown>>): Record<string, string> {
  const renamed: Record<string, string> = {};
  for (const kind of ['requests', 'tokens']) {
    const limit = headers[`x-ratelimit-limit-${kind}`];
    if (limit === undefined) continue;
    const resetMs = millisecondsOf(String(headers[`x-ratelimit-reset-${kind}`]));
    renamed[`anthropic-ratelimit-${kind}-limit`] = String(limit);
    renamed[`anthropic-ratelimit-${kind}-remaining`] = String(headers[`x-ratelimit-remaining-${kind}`]);
    renamed[`anthropic-ratelimit-${kind}-reset`] = new Date(Date.now() + resetMs).toISOString();
  }
  return renamed;
}

/** Puts the key's limits into the headers of the response. */
export function showLimits({ state }: Pick<Context, 'state'>, limits: Limits | undefined): void {
  if (limits === undefined) return;
  const headers = limitHeaders(limits);
  Object.assign(state.headers, headers);
  // Of Anthropic's endpoints.
  if (state.headers['request-id'] !== undefined) Object.assign(state.headers, anthropicLimitHeaders(headers));
}

/**
 * Sets the gateway's headers on a response that is no stream, and writes one structured log line and the counters of every request,
 * once its response is complete.
 */
export function accessLog(log: Logger, metrics: ApiMetrics): Middleware<State> {
  return async (ctx, next) => {
    const { socket } = ctx.req;
    const bytesBefore = socket.bytesWritten;
    await next();
    setHeaders(ctx);
    afterSending(ctx.res, () => {
      const { facts, endpoint } = ctx.state;
      facts.bytes = socket.bytesWritten - bytesBefore;
      metrics.bytes.inc({ endpoint }, facts.bytes);
      recordRequest({ log, metrics }, ctx, ctx.respond === false ? ctx.res.statusCode : ctx.status);
    });
  };
}

/** Sets those that nothing has set since: the ones of an error are newer. */
function setHeaders({ res, state: { headers } }: Context): void {
  if (res.headersSent) return;
  for (const name in headers) if (!res.hasHeader(name)) res.setHeader(name, headers[name] as string);
}

/** Calls back once a response is sent or its client has disconnected. Without a connection it calls back at once. */
function afterSending(response: ServerResponse, listener: () => void): void {
  if (response.socket === null || response.closed) setImmediate(listener);
  else response.once('close', listener);
}

/** Endpoints of probes and scrapes, which are no requests of callers. */
const unmeasured: ReadonlySet<string> = new Set(['healthz', 'readyz', 'metrics']);

function countError(metrics: ApiMetrics, endpoint: string, { code, refusalReason }: ApiError): void {
  metrics.errors.inc({ endpoint, code });
  if (refusalReason !== undefined) metrics.refusals.inc({ endpoint, reason: refusalReason });
}

/** Logs and counts one request. `status` of a socket request is the one that it would have over HTTP. */
export function recordRequest(
  { log, metrics }: { readonly log: Logger; readonly metrics: ApiMetrics },
  ctx: Context,
  status: number,
): void {
  const { endpoint, startedAt, streamError, facts, jobId, caller, trace } = ctx.state;
  const milliseconds = performance.now() - startedAt;
  if (!unmeasured.has(endpoint)) {
    metrics.requests.inc({ endpoint, status: String(status) });
    if (facts.cache !== undefined) metrics.cachedAnswers.inc({ endpoint, result: String(facts.cache) });
    if (facts.single_flight !== undefined) metrics.singleFlights.inc({ endpoint, result: String(facts.single_flight) });
    metrics.duration.observe({ endpoint }, milliseconds / 1000, trace && traceIdOf(trace));
    if (streamError !== undefined) countError(metrics, endpoint, streamError);
  }
  const line = {
    job: jobId,
    method: ctx.method,
    path: loggedPath(ctx.path),
    status,
    ms: Math.round(milliseconds * 10) / 10,
    endpoint,
    account: caller?.account,
    key: caller?.apiKeyId,
    error: streamError?.code,
  };
  logEvent(log, Object.assign(line, facts), 'request');
}

/** Paths of results. Their ids are not logged, valid or not, because a link contains one. */
const results = /\/results\//i;

/** Matches what is not logged of a path. Few paths have any, so one test replaces all rewrites. */
const isUnusual = /\d{10}|signature=|sk-/i;

/** A path without the ids of files, and without API keys in the wrong place. */
export function loggedPath(path: string): string {
  if (results.test(path)) return '/results/[file]';
  return isUnusual.test(path) ? withoutIds(path).replace(/\bsk-[\w-]{12,}/g, '[key]') : path;
}

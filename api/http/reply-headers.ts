import type { Middleware } from 'koa';
import { newJobId } from '../../shared/ids.ts';
import type { Served } from '../../shared/jobs/job-state.ts';
import { formatDollars } from '../../shared/money/cost.ts';
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
  ctx.res.setHeader('x-request-id', `req_${ctx.state.jobId}`);
  return next();
};

/** Puts the id of the job, made or found, into the headers of a response that has not started. */
export function nameJob({ res }: Pick<Context, 'res'>, jobId: string): void {
  if (res.headersSent) return;
  const id = `job_${jobId}`;
  res.setHeader('x-request-id', id);
  if (res.hasHeader('request-id')) res.setHeader('request-id', id);
}

/**
 * Reports in the response's headers, and in the access log, the vendor, the number of calls, the cost if it is known in
 * time, and the ignored fields.
 */
export function showServed({ res, state }: Context, { vendor, calls, model, cost }: Served): void {
  state.facts.vendor = vendor;
  state.facts.calls = calls;
  if (model !== undefined) state.facts.served_model = model;
  const dollars = cost === undefined ? undefined : formatDollars(cost);
  if (dollars !== undefined) state.facts.cost = dollars;
  if (res.headersSent) return;
  res.setHeader('x-sluice-vendor', vendor);
  res.setHeader('x-sluice-attempts', String(calls));
  if (dollars !== undefined) res.setHeader('x-sluice-cost', dollars);
  // An operator may give a model a name that headers do not allow.
  if (model !== undefined) res.setHeader('x-sluice-model', encodeURI(model));
  const ignored = state.ignored?.get(serverName(vendor, model));
  if (ignored) res.setHeader('x-sluice-ignored', ignored);
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

/** Sets the headers of the key's limits on a response that has not started. */
export function showLimits({ res }: Pick<Context, 'res'>, limits: Limits | undefined): void {
  if (limits === undefined || res.headersSent) return;
  const headers = limitHeaders(limits);
  for (const name in headers) res.setHeader(name, headers[name] as string);
}

import type { Middleware } from 'koa';
import { newJobId } from '../../shared/ids.ts';
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

import type { Middleware } from 'koa';
import { newJobId } from '../../shared/ids.ts';
import type { Context, State } from '../state.ts';

/**
 * Gives every request its id, `x-request-id` on every answer: `req_x`, until it has made the job `job_x` (see `nameJob`). One
 * that was refused keeps the first: it has no job to look for.
 */
export const requestId: Middleware<State> = (ctx, next) => {
  ctx.state.jobId = newJobId();
  ctx.state.startedAt = performance.now();
  ctx.state.endpoint = 'other';
  ctx.state.facts = {};
  ctx.res.setHeader('x-request-id', `req_${ctx.state.jobId}`);
  return next();
};

/** Has an answer that is still to begin name the job that its request has made, or found. */
export function nameJob({ res }: Pick<Context, 'res'>, jobId: string): void {
  if (res.headersSent) return;
  const id = `job_${jobId}`;
  res.setHeader('x-request-id', id);
  if (res.hasHeader('request-id')) res.setHeader('request-id', id);
}

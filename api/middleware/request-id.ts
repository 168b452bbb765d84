import type { Middleware } from 'koa';
import { newJobId } from '../../shared/ids.ts';
import type { State } from '../state.ts';

/** Gives every request its id, which is also the id of the job it makes: `x-request-id` on every answer. */
export const requestId: Middleware<State> = (ctx, next) => {
  ctx.state.jobId = newJobId();
  ctx.state.startedAt = performance.now();
  ctx.state.endpoint = 'other';
  ctx.state.facts = {};
  ctx.res.setHeader('x-request-id', `job_${ctx.state.jobId}`);
  return next();
};

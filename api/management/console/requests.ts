import type { Middleware } from 'koa';
import type { Database } from '../../../shared/database/database.ts';
import { ApiError } from '../../../shared/errors.ts';
import { jobIdFromWire } from '../../../shared/ids.ts';
import { BoundedReads, readMs } from '../../bounds/bounded-reads.ts';
import type { RefusedRequest, RefusedRequests } from '../../refused-requests/refused-requests.ts';
import type { State } from '../../state.ts';
import { keyNames } from './console-job.ts';
import type { JobsDependencies } from './jobs.ts';
import { type AccountOf, findRow } from './jobs.ts';

/** Dependencies of `findRequest`. */
export interface RequestsDependencies extends JobsDependencies {
  readonly refused: RefusedRequests;
}

/**
 * `GET …/requests/{id}`: the outcome of a request, by its own id (`req_…`) or that of anything it made (`job_…`, `resp_…`,
 * `video_…`, …): the job, or why it was refused.
 */
export function findRequest(services: RequestsDependencies, db: Database, accountOf: AccountOf): Middleware<State> {
  const reads = new BoundedReads(readMs, 'Requests cannot be looked up for now.');
  return async (ctx) => {
    ctx.state.endpoint = 'request';
    const account = accountOf(ctx);
    const id = jobIdFromWire(ctx.params.id as string);
    if (id === undefined) throw notFound();
    const row = await reads.read(() => findRow(services, db, id));
    if (row !== undefined && (account === undefined || row.account_id === account)) {
      ctx.body = { object: 'request', id: `job_${id}`, account_id: row.account_id, job_id: `job_${id}`, refusal: null };
      return;
    }
    const refused = await reads.read(() => services.refused.find(id));
    if (refused === undefined || (account !== undefined && refused.account !== account)) throw notFound();
    const { key, account: owner = null } = refused;
    const names = await reads.read(() => keyNames(db, key === undefined ? [] : [key]));
    const refusal = refusalView(refused, key === undefined ? null : { id: key, name: names.get(key) ?? null });
    ctx.body = { object: 'request', id: `req_${id}`, account_id: owner, job_id: null, refusal };
  };
}

function notFound(): ApiError {
  return new ApiError('not_found', 'No job has this id, and no request with it was refused in the last 7 days.');
}

function refusalView(
  { at, method, path, status, type, code, message, param }: RefusedRequest,
  key: { readonly id: string; readonly name: string | null } | null,
): Record<string, unknown> {
  const error = { type, code, message, param: param ?? null };
  return { created_at: at, method, path, status, error, key };
}

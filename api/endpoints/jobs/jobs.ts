import type { Middleware } from 'koa';
import { ApiError } from '../../../shared/errors.ts';
import { isRequestId, jobIdFromWire } from '../../../shared/ids.ts';
import type { Frame } from '../../../shared/jobs/append.ts';
import { type JobState, readJobState } from '../../../shared/jobs/job-state.ts';
import { type EndJobContext, endJob } from '../../../shared/jobs/settlement/end-job.ts';
import { shareOfReply } from '../../bounds/body-shares.ts';
import { readMs } from '../../bounds/bounded-reads.ts';
import { WrittenJson } from '../../http/compress-json.ts';
import type { StoredJobs } from '../../ledger/stored-jobs.ts';
import type { Endpoint } from '../../pipeline/endpoint.ts';
import { assertReached, type FollowJobDependencies, followEvents } from '../../pipeline/follow-job.ts';
import { type JobObject, type JobObjectDependencies, jobObject } from '../../pipeline/job-object.ts';
import { isTooMuch, type ResourceDependencies, readWhole } from '../../pipeline/resource.ts';
import { BufferedReply } from '../../replies/buffered-reply.ts';
import { ClientConnection, type Handover } from '../../replies/client-connection.ts';
import { type EventPosition, parseEventId } from '../../replies/sse-reply.ts';
import { viewJob } from '../../replies/view.ts';
import type { Context, State } from '../../state.ts';

/** Dependencies of a route that names a job. */
export interface FindJobDependencies {
  readonly storedJobs: StoredJobs;
  readonly handover: Handover;
}

/** Dependencies of the routes of jobs. */
export interface JobRoutesDependencies
  extends FindJobDependencies,
    ResourceDependencies,
    FollowJobDependencies,
    JobObjectDependencies {}

/** The routes of jobs, the same for every capability: read, follow, cancel. Their ids may have any view's prefix. */
export interface JobRoutes {
  /** `GET /v1/jobs/{id}`: the job, with its endpoint's own body as `result` once it has completed. */
  readonly read: Middleware<State>;
  /** `GET /v1/jobs/{id}/events`: the events of the endpoint that made the job; resumes after a given event. */
  readonly events: Middleware<State>;
  /** `DELETE /v1/jobs/{id}`: cancels; returns the job, unchanged if it had ended. */
  readonly cancel: Middleware<State>;
}

/** The error for the id of a request that made no job, or was refused. */
const noJob =
  'This is the id of a request that has no job: it was refused, or made none. Its answer said why; ids of jobs begin with `job_`.';

/** Returns the account whose jobs a request may see. */
type AccountOf = (ctx: Context) => string;

const callersAccount: AccountOf = (ctx) => ctx.state.caller.account;

/**
 * Creates the handlers of the job routes.
 * @param endpoints by the name that jobs have
 * @param accountOf defaults to the API key's account
 */
export function jobRoutes(
  services: JobRoutesDependencies,
  endpoints: ReadonlyMap<string, Endpoint>,
  accountOf = callersAccount,
): JobRoutes {
  const endpointOf = (state: JobState): Endpoint => findEndpoint(endpoints, state);
  return {
    read: async (ctx) => {
      ctx.state.endpoint = 'job';
      await withJob(services, ctx, accountOf(ctx), async (state, connection) => {
        const { result, error } = await readEnd({ ctx, services, connection }, endpointOf(state), state);
        const job = await jobObject({ ctx, services }, state, null, error);
        ctx.body = result === undefined ? job : withResult(job, result);
      });
    },
    events: async (ctx) => {
      ctx.state.endpoint = 'job.events';
      const resumeAfter = readPosition(ctx);
      await withJob(services, ctx, accountOf(ctx), async (state, connection) => {
        const { view } = endpointOf(state);
        // Checked before the reader exists: a live frame would start the response, which fixes its status.
        if (resumeAfter !== undefined) await assertReached(services, state.id, resumeAfter);
        await followEvents({ ctx, services, connection, job: state, view, resumeAfter, isWatcher: true });
      });
    },
    cancel: async (ctx) => {
      ctx.state.endpoint = 'job.cancel';
      await withJob(services, ctx, accountOf(ctx), async (state, connection) => {
        const ended = await cancelJob(services, state, connection, 'The job was cancelled by its owner.');
        ctx.body = await jobObject({ ctx, services }, ended, null);
      });
    },
  };
}

/** Returns the endpoint that made a job. @throws ApiError 404 when it is not offered. */
export function findEndpoint(endpoints: ReadonlyMap<string, Endpoint>, job: Pick<JobState, 'endpoint'>): Endpoint {
  const endpoint = endpoints.get(job.endpoint);
  if (endpoint === undefined) throw new ApiError('not_found', 'This job belongs to an endpoint that is not offered.');
  return endpoint;
}

/**
 * Ends a job and returns it; one that had ended is unchanged.
 * @param message who has cancelled it, for its caller
 */
export async function cancelJob(
  services: EndJobContext,
  job: JobState,
  connection: ClientConnection,
  message: string,
): Promise<JobState> {
  await connection.wait(endJob(services, job, new ApiError('cancelled', message)), readMs);
  return (await connection.wait(readJobState(services.redis, job.id), readMs)) ?? job;
}

/**
 * Runs `work` with the job in the path, from its state or, if Redis no longer has it, from its row. Another account's job is
 * the same 404 as an unknown one.
 * @param account of the job; undefined, for operators: any
 */
export async function withJob(
  services: FindJobDependencies,
  ctx: Context,
  account: string | undefined,
  work: (state: JobState, connection: ClientConnection) => Promise<void>,
): Promise<void> {
  const connection = new ClientConnection(ctx.res, services.handover);
  try {
    const id = ctx.params.id as string;
    if (isRequestId(id)) throw new ApiError('not_found', noJob);
    const jobId = jobIdFromWire(id);
    const state = jobId && (await connection.wait(services.storedJobs.find(jobId), readMs));
    if (!state || (account !== undefined && state.account !== account)) throw new ApiError('not_found', 'No such job.');
    ctx.state.facts.job_id = state.id;
    await work(state, connection);
  } finally {
    connection.close();
  }
}

/** A request that reads a job. */
interface Reading {
  readonly ctx: Context;
  readonly services: ResourceDependencies;
  readonly connection: ClientConnection;
}

/** Writes a job with its result, the last of its fields, whose JSON may be megabytes and needs no parsing. */
function withResult(job: JobObject, result: string): WrittenJson {
  return new WrittenJson(`${JSON.stringify(job).slice(0, -'null}'.length)}${result}}`);
}

/** How a job ended, as far as its log or the database still has it: the endpoint's body as JSON, or the error. */
async function readEnd(
  { ctx, services, connection }: Reading,
  endpoint: Endpoint,
  state: JobState,
): Promise<{ readonly result?: string; readonly error?: ApiError }> {
  if (state.outcome === undefined) return {};
  const { view } = endpoint;
  try {
    const share = shareOfReply(services.bodies, ctx, state);
    const viewed = await viewJob(services, state, services.baseUrls.of(ctx.req), share);
    const compose = (frames: readonly Frame[]): string => view.held(viewed, frames);
    const body = await readWhole(
      services,
      state,
      connection,
      new BufferedReply(compose, view.heldFromEnd, false, share),
    );
    return { result: view.contentType?.(viewed) === undefined ? body : JSON.stringify(body) };
  } catch (thrown) {
    const error = ApiError.from(thrown);
    // A completed job has no error: this one occurred while reading.
    const isOfReading = isTooMuch(error) || (state.outcome === 'completed' && error.code !== 'resume_expired');
    if (error === connection.ended || isOfReading) throw error;
    return error.code === 'resume_expired' ? {} : { error };
  }
}

/** The event after which to go on: `Last-Event-ID`, or `?starting_after=`. */
export function readPosition(ctx: Context): EventPosition | undefined {
  const query = ctx.query.starting_after;
  const header = ctx.headers['last-event-id'];
  const given = typeof header === 'string' && header !== '' ? header : query;
  if (given === undefined) return undefined;
  const position = typeof given === 'string' ? parseEventId(given) : undefined;
  const param = given === query ? 'starting_after' : 'Last-Event-ID';
  if (position !== undefined) return { ...position, param };
  throw new ApiError('invalid_request_error', 'An event id is a number, or two joined by a point: 12 or 12.0.', {
    param,
  });
}

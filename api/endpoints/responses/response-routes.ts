import type { ParsedUrlQuery } from 'node:querystring';
import type { Middleware } from 'koa';
import type { ResponseItem } from '../../../shared/capabilities/response.ts';
import { includable } from '../../../shared/capabilities/response-request.ts';
import { ApiError } from '../../../shared/errors.ts';
import { jobIdFromWire } from '../../../shared/ids.ts';
import type { JobState } from '../../../shared/jobs/job-state.ts';
import { shareOfReply } from '../../bounds/body-shares.ts';
import { readMs } from '../../bounds/bounded-reads.ts';
import { pageOf, readPageQuery } from '../../http/page.ts';
import type { ResolveDependencies } from '../../pipeline/endpoint.ts';
import { type FollowJobDependencies, followEvents } from '../../pipeline/follow-job.ts';
import { shownId } from '../../pipeline/missing.ts';
import { invalidParameter } from '../../pipeline/request-fields.ts';
import { readResource } from '../../pipeline/resource.ts';
import { ClientConnection, type Handover } from '../../replies/client-connection.ts';
import type { View, ViewedJob } from '../../replies/view.ts';
import type { Context, State } from '../../state.ts';
import { cancelJob, readPosition } from '../jobs/jobs.ts';
import { findResponseJob, readInputItems } from './earlier-turns.ts';
import { optionsOf } from './fold-response.ts';
import type { ResponseViewOptions } from './parse-response.ts';
import { isBackground, withoutUnasked } from './response-view.ts';

/** Dependencies of the routes of stored responses. */
export interface ResponseRoutesDependencies extends ResolveDependencies, FollowJobDependencies {
  readonly handover: Handover;
}

/** The routes of stored responses (https://platform.openai.com/docs/api-reference/responses). */
export interface ResponseRoutes {
  /** `GET /v1/responses/{id}`: the response; with `stream=true` its events, from `starting_after` on. */
  readonly retrieve: Middleware<State>;
  /** `DELETE /v1/responses/{id}`: deletes its body; its row in the ledger stays. A running one is cancelled first. */
  readonly remove: Middleware<State>;
  /** `POST /v1/responses/{id}/cancel`: cancels one in the background and returns it. */
  readonly cancel: Middleware<State>;
  /** `GET /v1/responses/{id}/input_items`: all its input items, including those of earlier turns. */
  readonly inputItems: Middleware<State>;
}

/** The response of a request's path. */
interface NamedResponse {
  readonly services: ResponseRoutesDependencies;
  readonly ctx: Context;
  readonly view: View;
  readonly job: JobState;
  readonly viewed: ViewedJob<ResponseViewOptions>;
  readonly connection: ClientConnection;
}

/** The handlers of those routes. @param view that of the endpoint */
export function responseRoutes(services: ResponseRoutesDependencies, view: View): ResponseRoutes {
  const route =
    (endpoint: string, work: (named: NamedResponse) => Promise<void>): Middleware<State> =>
    async (ctx) => {
      ctx.state.endpoint = endpoint;
      const connection = new ClientConnection(ctx.res, services.handover);
      try {
        const id = ctx.params.id as string;
        const { account } = ctx.state.caller;
        const share = shareOfReply(services.bodies, ctx, { account });
        const found = await findResponseJob({ services, account, connection, share }, jobIdFromWire(id));
        if (found === undefined) throw new ApiError('not_found', `Response with id '${shownId(id)}' not found.`);
        ctx.state.facts.job_id = found.job.id;
        await work({ services, ctx, view, ...found, connection });
      } finally {
        connection.close();
      }
    };
  return {
    retrieve: route('response', async (named) => {
      const { ctx, job, viewed } = named;
      const shown = including(view, readIncluded(ctx.query));
      if (readSwitch(ctx.query, 'stream')) return await streamAgain({ ...named, view: shown });
      for (const param of ['starting_after', 'include_obfuscation']) {
        if (ctx.query[param] !== undefined) throw invalidParameter(param, `'${param}' needs 'stream' to be true.`);
      }
      ctx.body = await readResource(named, shown, job, viewed);
    }),
    remove: route('response.delete', remove),
    cancel: route('response.cancel', cancel),
    inputItems: route('response.input_items', listInputItems),
  };
}

async function cancel(named: NamedResponse): Promise<void> {
  const { ctx, view, viewed } = named;
  if (!isBackground(viewed)) {
    throw new ApiError('invalid_request_error', 'Cannot cancel a synchronous response: only one in the background.');
  }
  ctx.body = await readResource(named, view, await end(named), viewed);
}

/** Cancels a job, unless it has ended, and returns its state after that. */
async function end({ services, job, connection }: NamedResponse): Promise<JobState> {
  if (job.outcome !== undefined) return job;
  return await cancelJob(services, job, connection, 'The response was cancelled by its owner.');
}

async function remove(named: NamedResponse): Promise<void> {
  const { services, ctx, job, connection } = named;
  const ended = await end(named);
  await connection.wait(services.storedJobs.delete(ended, []), readMs);
  ctx.body = { id: `resp_${job.id}`, object: 'response', deleted: true };
}

/**
 * Streams the events of a background response that was created with `stream`. The client's position is in `starting_after`,
 * a `sequence_number`, or in `Last-Event-ID`.
 */
async function streamAgain({ services, ctx, view, job, viewed, connection }: NamedResponse): Promise<void> {
  if (!isBackground(viewed) || !job.stream) {
    throw invalidParameter('stream', "Only a response made with 'background' and 'stream' can be streamed again.");
  }
  // Obfuscating padding is up to the vendor; none is added here.
  if (readSwitch(ctx.query, 'include_obfuscation')) ctx.set('x-sluice-ignored', 'include_obfuscation');
  const after = readStartingAfter(ctx);
  // A client that reconnects on its own repeats the query, and has its latest position in the header.
  const resumeAfter = ctx.headers['last-event-id'] ? readPosition(ctx) : undefined;
  const shown = after === undefined ? view : startingAfter(view, after);
  await followEvents({ ctx, services, connection, job, view: shown, resumeAfter, isWatcher: true });
}

/** Reads `include`, also as `include[]`, which OpenAI's clients send. @throws ApiError 400. */
function readIncluded(query: ParsedUrlQuery): readonly string[] {
  const values = [query.include, query['include[]']].flat().filter((value) => value !== undefined);
  const unknown = values.find((value) => !includable.safeParse(value).success);
  if (unknown === undefined) return values;
  throw invalidParameter('include', `Invalid 'include': expected one of ${includable.options.join(', ')}.`);
}

/** Reads a parameter that is `true` or `false`; false by default. @throws ApiError 400. */
function readSwitch(query: ParsedUrlQuery, param: string): boolean {
  const value = query[param] ?? 'false';
  if (value === 'true' || value === 'false') return value === 'true';
  throw invalidParameter(param, `Invalid '${param}': expected true or false.`);
}

/** Extends a view by further values of `include`. */
function including(view: View, included: readonly string[]): View {
  const { resource } = view;
  const asked = (job: ViewedJob): ViewedJob => {
    const { include } = optionsOf(job);
    return { ...job, viewOptions: { ...job.viewOptions, include: [...include, ...included] } };
  };
  return {
    ...view,
    stream: (job) => view.stream(asked(job)),
    ...(resource && { resource: (job, state) => resource(asked(job), state) }),
  };
}

function readStartingAfter({ query }: Context): number | undefined {
  const { starting_after: given } = query;
  if (given === undefined) return undefined;
  if (typeof given === 'string' && /^\d{1,12}$/.test(given)) return Number(given);
  throw invalidParameter('starting_after', "Invalid 'starting_after': expected a sequence number.");
}

/** Omits the events up to a sequence number from a view. Views write it first of an event's varying fields. */
function startingAfter(view: View, sequenceNumber: number): View {
  return {
    ...view,
    stream: (job) => {
      const events = view.stream(job);
      return (frame) =>
        events(frame).map((event) => {
          const number = /"sequence_number":(\d+)/.exec(event)?.[1];
          const isDelivered = number !== undefined && Number(number) <= sequenceNumber;
          // Kept as an empty event, because event ids count it.
          return isDelivered ? '' : event;
        });
    },
  };
}

async function listInputItems({ services, ctx, job, viewed, connection }: NamedResponse): Promise<void> {
  const page = readPageQuery(ctx.query, { usual: 20, most: 100 });
  const included = readIncluded(ctx.query);
  const share = shareOfReply(services.bodies, ctx, job);
  const task = { select: 'page', jobId: job.id, page } as const;
  const items = await readInputItems({ services, connection, share }, { job, viewed }, task);
  if (items === undefined) throw new ApiError('resume_expired', 'The input of this response is no longer kept.');
  const shown = items.map((item) => asResource(withoutUnasked(item, included)));
  ctx.body = pageOf(shown, page.limit);
}

/** An input item in OpenAI's list format, with defaults for optional fields. */
function asResource(item: ResponseItem): ResponseItem {
  if (item.type !== undefined && item.type !== 'message') return { ...item, status: item.status ?? 'completed' };
  const { content, role } = item;
  const type = role === 'assistant' ? 'output_text' : 'input_text';
  const parts = typeof content === 'string' ? [{ type, text: content }] : (content as Record<string, unknown>[]);
  return {
    ...item,
    type: 'message',
    status: item.status ?? 'completed',
    content: parts.map((part) => {
      if (part.type === 'output_text') return { annotations: [], logprobs: [], ...part };
      return part.type === 'input_image' ? { detail: 'auto', ...part } : part;
    }),
  };
}

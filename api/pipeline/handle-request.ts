import type { Middleware } from 'koa';
import { ApiError } from '../../shared/errors.ts';
import type { JobIdentity, JobState } from '../../shared/jobs/job-state.ts';
import { admitAndEnqueue, discardUploads } from '../admission/admit-job.ts';
import { type Preferences, readPreferences } from '../admission/preferences.ts';
import type { Submission } from '../admission/submission.ts';
import { shareOfReads } from '../bounds/body-shares.ts';
import { readMs } from '../bounds/bounded-reads.ts';
import { nameJob, showLimits, showServed } from '../http/request-report.ts';
import type { CacheHits } from '../ledger/usage/cache-hits.ts';
import { cancelAbandoned, cancelUnreadable, type LeaveJobDependencies } from '../replies/cancel-job.ts';
import { ClientConnection, type Handover, WaitLimits } from '../replies/client-connection.ts';
import { openReply, type Reply } from '../replies/open-reply.ts';
import type { Context, State } from '../state.ts';
import { type DescribeJobDependencies, describeJob } from './describe-job.ts';
import type { Endpoint } from './endpoint.ts';
import { type FollowContext, type FollowJobDependencies, followEvents, followJob } from './follow-job.ts';
import { type JobObjectDependencies, jobObject } from './job-object.ts';
import { type ParseRequestDependencies, parseRequest } from './parse-request.ts';
import { type QuoteDependencies, replyWithQuote } from './quote.ts';
import { readResource } from './resource.ts';
import { replyToShared, type SingleFlightDependencies } from './single-flight.ts';
import { type SubmitOrAdoptDependencies, submitOrAdopt } from './submit-or-adopt.ts';
import { type SubmitOrFindDependencies, submitOrFind } from './submit-or-find.ts';
import { type ValidateRequestDependencies, validateRequest } from './validate-request.ts';

/** Dependencies of the handler of requests that make jobs. */
export interface HandleRequestDependencies
  extends ParseRequestDependencies,
    ValidateRequestDependencies,
    DescribeJobDependencies,
    SubmitOrFindDependencies,
    FollowJobDependencies,
    LeaveJobDependencies,
    SubmitOrAdoptDependencies,
    SingleFlightDependencies,
    QuoteDependencies,
    JobObjectDependencies {
  readonly handover: Handover;
  readonly cacheHits: Pick<CacheHits, 'add'>;
}

/** A request on its way through an endpoint. */
interface EndpointCall {
  readonly ctx: Context;
  readonly services: HandleRequestDependencies;
  readonly endpoint: Endpoint;
  readonly preferences: Preferences;
  readonly connection: ClientConnection;
  readonly submission: Submission;
}

/** The one handler of all endpoints that make jobs: parse, validate, admit, enqueue, and reply as the caller prefers. */
export function handleRequest(services: HandleRequestDependencies, endpoint: Endpoint): Middleware<State> {
  return async (ctx) => {
    ctx.state.endpoint = endpoint.name;
    const preferences = readPreferences(ctx.headers);
    if (preferences.quote) return await replyWithQuote(ctx, services, endpoint, preferences);
    const submission = await readSubmission(ctx, services, endpoint, preferences);
    const connection = new ClientConnection(ctx.res, services.handover);
    const call: EndpointCall = { ctx, services, endpoint, preferences, connection, submission };
    try {
      if (preferences.respondAsync) await replyLater(call);
      else if (submission.parsed?.background) await replyInBackground(call);
      else if (submission.isShared) await replyToShared(call, endpoint.view);
      else if (submission.job.idempotency !== '') await replyToKeyed(call);
      else if (submission.isRetry) await replyToRetry(call);
      else await reply(call);
    } finally {
      connection.close();
      submission.share?.close();
    }
  };
}

/** Body → parsed request → validated against its model → job. Uploads of a refused request are deleted. */
async function readSubmission(
  ctx: Context,
  services: HandleRequestDependencies,
  endpoint: Endpoint,
  preferences: Preferences,
): Promise<Submission> {
  const { share: own, parsed, bodyHash, retryName } = await parseRequest(ctx, services, endpoint, preferences);
  const reads = endpoint.resolve && shareOfReads(services.bodies, ctx.state.caller, own);
  const share = reads ?? own;
  try {
    const valid = await validateRequest(ctx, services, endpoint, parsed, reads);
    return await describeJob(ctx, services, endpoint, { parsed: valid, bodyHash, retryName, share }, preferences);
  } catch (error) {
    share?.close();
    await discardUploads(services, ctx.state.caller.account, parsed.files);
    throw error;
  }
}

/** Handles a plain request. Its reader is registered before the job is queued, so that no frame is missed. */
async function reply(call: EndpointCall): Promise<void> {
  const { ctx, services, submission, connection } = call;
  const { job } = submission;
  const reply = await openReply({ ...replyContext(call, job), isCreator: true });
  const reader = services.readers.open(job, reply.receiver, {
    onServed: (served) => showServed(ctx, served),
    isCreator: true,
  });
  let isQueued = false;
  try {
    const { limits } = await admitAndEnqueue(services, submission, connection);
    isQueued = true;
    nameJob(ctx, job.id);
    showLimits(ctx, limits);
    const { ownDeadlineAt } = submission;
    reader.begin(new WaitLimits(services, job, reply.receiver, { ownDeadlineAt, endsJob: true }));
    await reply.finished();
  } catch (error) {
    if (isQueued) await cancelAbandoned(services, submission, connection, reply);
    throw error;
  } finally {
    reader.close();
    if (reader.failure !== undefined) cancelUnreadable(services, submission, reader.failure);
  }
}

/**
 * Handles a retry that the client library makes on its own. It is submitted first, and follows the job that it has made, or that of
 * an earlier try, as if it had made that.
 */
async function replyToRetry(call: EndpointCall): Promise<void> {
  const { services, submission, connection } = call;
  const job = await submitOrAdopt(call);
  let reply: Reply | undefined;
  try {
    const { ownDeadlineAt } = submission;
    await followJob({ ...replyContext(call, job), isCreator: true, ownDeadlineAt, endsJob: true }, async (context) => {
      reply = await openReply(context);
      return reply;
    });
  } catch (error) {
    const followed = { ...submission, job };
    await cancelAbandoned(services, followed, connection, reply);
    if (connection.ended === undefined) cancelUnreadable(services, followed, ApiError.from(error));
    throw error;
  }
}

/** Handles a keyed or cached request, which may repeat an earlier one: it is submitted first, and follows the job that it is bound to. */
async function replyToKeyed(call: EndpointCall): Promise<void> {
  const { job, isReplay } = await submitOrFind(call);
  // Requests for one cached answer may be many at a time: each is bounded as any other request, by its connection.
  const isWatcher = isReplay && call.submission.cacheMs === undefined;
  // Each waits as long as it says itself, and the job goes on.
  const { ownDeadlineAt } = call.submission;
  await followJob({ ...replyContext(call, job), isCreator: !isReplay, isRepeat: isReplay, isWatcher, ownDeadlineAt });
  const isHit = isReplay && !isWatcher && call.ctx.state.streamError === undefined;
  if (isHit) call.services.cacheHits.add(call.submission.job);
}

/** Handles `Prefer: respond-async`: 202 with the job, or its answer if that is ready, or as a stream begins, within `wait`. */
async function replyLater(call: EndpointCall): Promise<void> {
  const { ctx, services, preferences } = call;
  const { job, isReplay } = await submitOrFind(call);
  const following = {
    ...replyContext(call, job),
    patienceMs: preferences.waitMs,
    isWatcher: isReplay,
    isRepeat: isReplay,
  };
  if (preferences.waitMs > 0 && (await followJob(following))) return;
  const state = await readAccepted(call, job);
  ctx.status = 202;
  ctx.set('preference-applied', 'respond-async');
  const body = await jobObject(call, state, null);
  // Without a public URL, only the caller knows the gateway's address.
  ctx.set('location', services.config.publicUrls.length === 0 ? `/v1/jobs/job_${job.id}` : body.urls.self);
  ctx.body = body;
}

/** Handles background work: replies with its events if requested, else at once with the resource in its current state. */
async function replyInBackground(call: EndpointCall): Promise<void> {
  const { ctx, endpoint } = call;
  const { job, isReplay } = await submitOrFind(call);
  if (job.stream) await followEvents({ ...replyContext(call, job), isWatcher: isReplay });
  else ctx.body = await readResource(call, endpoint.view, await readAccepted(call, job));
}

/** Reads the state of a job that was just accepted. */
async function readAccepted({ services, connection }: EndpointCall, { id }: JobIdentity): Promise<JobState> {
  const state = await connection.wait(services.storedJobs.find(id), readMs);
  if (state === undefined) throw new ApiError('server_error', 'The job was accepted, but its state cannot be read.');
  return state;
}

function replyContext({ ctx, services, connection, endpoint }: EndpointCall, job: JobIdentity): FollowContext {
  return { ctx, services, connection, job, view: endpoint.view };
}

import type { Middleware } from 'koa';
import { ApiError } from '../../shared/errors.ts';
import { type JobIdentity, type JobState, readJobState } from '../../shared/jobs/job-state.ts';
import { freesIdempotencyKey } from '../../shared/jobs/settlement/settle.ts';
import { type Preferences, readPreferences } from '../admission/preferences.ts';
import type { Submission } from '../admission/submission.ts';
import { discardUploads, forgetBinding, submit } from '../admission/submit.ts';
import { jobObject } from '../endpoints/jobs/job-object.ts';
import { nameJob } from '../http/request-id.ts';
import { ClientConnection } from '../replies/client-connection.ts';
import type { Services } from '../services.ts';
import type { Context, State } from '../state.ts';
import { answerJob, answerStream, attachTo, hasEvents, type Start, type Waiting } from './answer.ts';
import type { Endpoint } from './endpoint.ts';
import { makeSubmission } from './make-submission.ts';
import { readRequest } from './read-request.ts';
import { readResource } from './resource.ts';

/** How long Redis or the database may take to show a job. */
const readMs = 5000;

/** A request on its way through an endpoint. */
interface EndpointCall {
  readonly ctx: Context;
  readonly services: Services;
  readonly endpoint: Endpoint;
  readonly preferences: Preferences;
  readonly connection: ClientConnection;
  readonly submission: Submission;
}

/** The one handler of all endpoints that make jobs: check, admit, queue, and answer as the caller prefers. */
export function handleEndpoint(services: Services, endpoint: Endpoint): Middleware<State> {
  return async (ctx) => {
    ctx.state.endpoint = endpoint.name;
    const preferences = readPreferences(ctx.headers);
    const submission = await readSubmission(ctx, services, endpoint, preferences);
    const connection = new ClientConnection(ctx.res, services.handover);
    try {
      await answer({ ctx, services, endpoint, preferences, connection, submission });
    } finally {
      connection.close();
      submission.onQueued?.();
    }
  };
}

/** The request as it is submitted. Neither its body nor what was made of it is kept anywhere else. */
async function readSubmission(
  ctx: Context,
  services: Services,
  endpoint: Endpoint,
  preferences: Preferences,
): Promise<Submission> {
  const read = await readRequest(ctx, services, endpoint, preferences);
  try {
    return await makeSubmission(ctx, services, endpoint, read, preferences);
  } catch (error) {
    read.share?.close();
    throw error;
  }
}

/**
 * A plain request registers its reader, then submits: the first frame finds it waiting. A keyed or asynchronous one may
 * turn out to be an earlier request's repeat, so it submits first and attaches to whichever job is its own.
 */
async function answer(call: EndpointCall): Promise<void> {
  const { preferences, submission } = call;
  const { job } = submission;
  if (preferences.respondAsync) return await answerLater(call);
  if (submission.parsed?.background) return await answerInBackground(call);
  if (job.idempotency !== '') return await answerKeyed(call);
  const { cancelsOnLeave } = submission;
  const waiting: Waiting = { ...waitingFor(call, job), isCreator: true, cancelsOnLeave };
  const start: Start = async () => {
    await submit(call.services, submission, call.connection);
  };
  await answerJob(waiting, start);
}

async function answerKeyed(call: EndpointCall): Promise<void> {
  const { job, isReplay } = await submitOrFind(call);
  const waiting: Waiting = { ...waitingFor(call, job), isCreator: !isReplay, isWatcher: isReplay };
  await answerJob(waiting, attachTo(call.services, job));
}

/** `Prefer: respond-async`: 202 with the job, or its answer when it came within `wait`. */
async function answerLater(call: EndpointCall): Promise<void> {
  const { ctx, services, preferences } = call;
  const { job, isReplay } = await submitOrFind(call);
  const waiting: Waiting = { ...waitingFor(call, job), patienceMs: preferences.waitMs, isWatcher: isReplay };
  if (preferences.waitMs > 0 && !hasEvents(waiting)) {
    if (await answerJob(waiting, attachTo(services, job))) return;
  }
  const state = await readAccepted(call, job);
  ctx.status = 202;
  ctx.set('preference-applied', 'respond-async');
  const body = await jobObject(call, state, null);
  // Where nobody has said how the gateway is reached, its caller knows best.
  ctx.set('location', services.config.publicUrls.length === 0 ? `/v1/jobs/job_${job.id}` : body.urls.self);
  ctx.body = body;
}

/** Work in the background: its events where they are asked for, else at once the resource as it is now. */
async function answerInBackground(call: EndpointCall): Promise<void> {
  const { ctx, services, endpoint } = call;
  const { job, isReplay } = await submitOrFind(call);
  if (job.stream) {
    await answerStream({ ...waitingFor(call, job), isWatcher: isReplay }, attachTo(services, job));
    return;
  }
  const state = await readAccepted(call, job);
  ctx.body = await readResource(call, endpoint.view, state);
}

/** The state of a job that was just accepted. */
async function readAccepted({ services, connection }: EndpointCall, { id }: JobIdentity): Promise<JobState> {
  const state = await connection.wait(services.storedJobs.find(id), readMs);
  if (state === undefined) throw new ApiError('server_error', 'The job was accepted, but its state cannot be read.');
  return state;
}

function waitingFor({ ctx, services, connection, endpoint }: EndpointCall, job: JobIdentity): Waiting {
  return { ctx, services, connection, job, view: endpoint.view, isCreator: false, cancelsOnLeave: false };
}

/** Submits; a repeat of an earlier request (same idempotency key, same body) becomes that request's job. */
async function submitOrFind(call: EndpointCall): Promise<{ job: JobIdentity; isReplay: boolean }> {
  const { ctx, services, submission, connection } = call;
  for (;;) {
    const submitted = await submit(services, submission, connection);
    if (!submitted.isReplay) return { job: submission.job, isReplay: false };
    const live = await connection.wait(readJobState(services.redis, submitted.jobId), readMs);
    const bound = live ?? (await connection.wait(services.storedJobs.findEnded(submitted.jobId), readMs));
    if (bound !== undefined && isReplayed({ ...bound, idempotency: submission.job.idempotency })) {
      nameJob(ctx, bound.id);
      ctx.set('idempotent-replayed', 'true');
      if (submission.parsed !== undefined) {
        await discardUploads(services, submission.job.account, submission.parsed.files);
      }
      return { job: bound, isReplay: true };
    }
    // Redis lost the job but not the key, or the settlement that frees the key is yet to come: the request is new again.
    await forgetBinding(services, submission.job, submitted.jobId, live);
  }
}

/** Whether a repeat of a job's request gets its answer. */
function isReplayed(job: JobState): boolean {
  const { outcome } = job;
  return outcome === undefined || !freesIdempotencyKey({ ...job, outcome, began: job.attempt > 0 });
}

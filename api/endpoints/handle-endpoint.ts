import { createHash } from 'node:crypto';
import type { Middleware } from 'koa';
import type { Model } from '../../shared/catalogue/models.ts';
import { ApiError } from '../../shared/errors.ts';
import { type JobIdentity, type JobState, readJobState } from '../../shared/jobs/job-state.ts';
import { freesIdempotencyKey } from '../../shared/jobs/settle.ts';
import { idempotencyMs } from '../admission/admit.ts';
import { type Preferences, readPreferences } from '../admission/preferences.ts';
import { discardFiles, forgetBinding, type Limits, type Submission, submit } from '../admission/submit.ts';
import { ClientConnection } from '../answers/client-connection.ts';
import { isLargeBody, type LargeBodies, type PreparedLargeRequest } from '../large-bodies.ts';
import { isForm, readForm } from '../middleware/form-body.ts';
import { readBody } from '../middleware/json-body.ts';
import type { Services } from '../services.ts';
import type { Context, State } from '../state.ts';
import { packViewOptions } from '../view-options.ts';
import { answerJob, answerStream, attachTo, hasEvents, type Start, type Waiting } from './answer.ts';
import type { Endpoint, Prepared } from './endpoint.ts';
import { invalidParameter } from './invalid-request.ts';
import { jobObject } from './job-object.ts';
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
    }
  };
}

/** Reads, checks and takes apart the request. Neither its body nor what was made of it is kept anywhere else. */
async function readSubmission(
  ctx: Context,
  services: Services,
  endpoint: Endpoint,
  preferences: Preferences,
): Promise<Submission> {
  const isKeyed = preferences.idempotencyKey !== undefined;
  const read = await (isForm(ctx) ? readFormRequest : readJsonRequest)(ctx, services, endpoint, isKeyed);
  const prepared = await complete(ctx, services, endpoint, read.prepared);
  return await makeSubmission(ctx, services, endpoint, { ...read, prepared }, preferences);
}

/** A request as it is submitted, once it is resolved and checked. */
export async function makeSubmission(
  ctx: Context,
  services: Services,
  endpoint: Endpoint,
  { prepared, bodyHash }: ReadRequest,
  preferences: Preferences,
): Promise<Submission> {
  ctx.state.facts.model = prepared.model;
  ctx.state.facts.stream = prepared.stream;
  return {
    job: await identify(services, ctx, endpoint, prepared, preferences),
    caller: ctx.state.caller,
    prepared,
    bodyHash,
    cancelsOnLeave: !prepared.background && cancelsOnLeave(ctx, preferences),
    onAdmitted: (limits) => showLimits(ctx, limits),
  };
}

/** Resolves what a request names, and holds it against its model. What it has uploaded goes when it is refused. */
async function complete(ctx: Context, services: Services, endpoint: Endpoint, read: Prepared): Promise<Prepared> {
  try {
    const prepared = await resolve(ctx, services, endpoint, read);
    const ignored = checkRequest(services, endpoint, prepared);
    if (ignored !== '') ctx.set('x-sluice-ignored', ignored);
    return prepared;
  } catch (error) {
    await discardFiles(services, read);
    throw error;
  }
}

/**
 * Holds a request against its model. Answers the names of its fields that are left out.
 * @throws ApiError 400, 404.
 */
export function checkRequest(services: Services, endpoint: Endpoint, prepared: Prepared): string {
  const ignored = endpoint.check?.(prepared, findModel(services, endpoint, prepared.model)) ?? [];
  return [...new Set(ignored)].join(', ');
}

async function resolve(ctx: Context, services: Services, endpoint: Endpoint, read: Prepared): Promise<Prepared> {
  if (endpoint.resolve === undefined) return read;
  const connection = new ClientConnection(ctx.res, services.handover);
  try {
    const { account } = ctx.state.caller;
    return await endpoint.resolve(read, {
      services,
      account,
      params: ctx.params as Record<string, string>,
      connection,
    });
  } finally {
    connection.close();
  }
}

/** A request that was read, and the hash of its body where it has an idempotency key. */
export interface ReadRequest {
  readonly prepared: Prepared;
  readonly bodyHash: string;
}

async function readJsonRequest(
  ctx: Context,
  { largeBodies }: Services,
  endpoint: Endpoint,
  isKeyed: boolean,
): Promise<ReadRequest> {
  const body = await readBody(ctx);
  if (endpoint.prepare === undefined) {
    throw new ApiError('unsupported_media_type', 'Send the body as multipart/form-data.');
  }
  const prepared = isLargeBody(body) ? await prepareLarge(ctx, largeBodies, endpoint, body) : endpoint.prepare(body);
  return { prepared, bodyHash: isKeyed ? sha256(body) : '' };
}

/** Prepares a body in the thread, unless its caller leaves first. */
async function prepareLarge(
  { res }: Context,
  largeBodies: LargeBodies,
  { name }: Endpoint,
  body: Buffer,
): Promise<PreparedLargeRequest> {
  const left = new AbortController();
  const leave = (): void => left.abort();
  res.once('close', leave);
  try {
    return await largeBodies.prepare(name, body, left.signal);
  } finally {
    res.off('close', leave);
  }
}

async function readFormRequest(
  ctx: Context,
  { blobs }: Services,
  endpoint: Endpoint,
  isKeyed: boolean,
): Promise<ReadRequest> {
  if (endpoint.prepareForm === undefined) {
    throw new ApiError('unsupported_media_type', 'Send the body as JSON, with Content-Type application/json.');
  }
  const { form, hash } = await readForm(ctx, blobs, isKeyed);
  try {
    return { prepared: endpoint.prepareForm(form), bodyHash: hash };
  } catch (error) {
    await discardFiles({ blobs }, { files: form.files.map(({ file }) => file) });
    throw error;
  }
}

/** The model's row. @throws ApiError 404 for an unknown model, 400 for one that this endpoint cannot use. */
function findModel(services: Services, endpoint: Endpoint, id: string): Model {
  const model = services.catalogue.find(id);
  if (model === undefined) {
    const near = services.catalogue.nearest(id);
    const hint = near.length === 0 ? '' : ` Did you mean ${near.join(' or ')}?`;
    throw new ApiError('model_not_found', `The model \`${id}\` does not exist or is not available here.${hint}`, {
      param: 'model',
    });
  }
  if (model.capability !== endpoint.capability) {
    throw invalidParameter('model', `The model \`${id}\` cannot be used with ${endpoint.path}.`);
  }
  return model;
}

async function identify(
  services: Services,
  ctx: Context,
  endpoint: Endpoint,
  prepared: Prepared,
  preferences: Preferences,
): Promise<JobIdentity> {
  const { config } = services;
  const { caller, jobId } = ctx.state;
  const now = Date.now();
  const isKeyed = preferences.idempotencyKey !== undefined;
  const isBackground = prepared.background === true;
  const kept = preferences.respondAsync || prepared.store ? config.resultMs : 0;
  // How long its caller waits for the answer says nothing of work that nobody waits for.
  const deadlineMs = isBackground ? config.backgroundDeadlineMs : (preferences.deadlineMs ?? config.deadlineMs);
  const goesOn = isBackground || isKeyed || preferences.respondAsync;
  return {
    id: jobId,
    account: caller.account,
    apiKeyId: caller.apiKeyId,
    capability: endpoint.capability,
    endpoint: endpoint.name,
    model: prepared.model,
    // Bytes are stored whole for later; nobody reads them as they grow.
    stream: prepared.stream && !(preferences.respondAsync && endpoint.view.bytes?.(prepared) !== undefined),
    createdAt: now,
    deadlineAt: now + deadlineMs,
    retentionMs: isKeyed ? Math.max(kept, idempotencyMs) : kept,
    // The endpoint is part of it: one key used on two endpoints is two requests.
    idempotency: isKeyed ? sha256(`${endpoint.name} ${preferences.idempotencyKey}`) : '',
    viewOptions: await packViewOptions(services.blobs, prepared.viewOptions),
    ...(prepared.store && { resource: goesOn ? 'background' : 'foreground' }),
  };
}

/**
 * A plain request registers its reader, then submits: the first frame finds it waiting. A keyed or asynchronous one may
 * turn out to be an earlier request's repeat, so it submits first and attaches to whichever job is its own.
 */
async function answer(call: EndpointCall): Promise<void> {
  const { preferences, submission } = call;
  const { job } = submission;
  if (preferences.respondAsync) return await answerLater(call);
  if (submission.prepared?.background) return await answerInBackground(call);
  if (job.idempotency !== '') return await answerKeyed(call);
  const { cancelsOnLeave } = submission;
  const waiting: Waiting = { ...waitingFor(call, job), isCreator: true, cancelsOnLeave };
  const start: Start = async () => {
    await submit(call.services, submission, call.connection);
  };
  await answerJob(waiting, start);
}

/** Keyed and asynchronous jobs go on without their caller; a plain one as the header, or else its key, says. */
function cancelsOnLeave({ state }: Context, preferences: Preferences): boolean {
  if (preferences.respondAsync || preferences.idempotencyKey !== undefined) return false;
  return (preferences.onDisconnect ?? state.caller.onDisconnect ?? 'cancel') === 'cancel';
}

async function answerKeyed(call: EndpointCall): Promise<void> {
  const { job, isReplay } = await submitOrFind(call);
  const waiting: Waiting = { ...waitingFor(call, job), isCreator: !isReplay };
  await answerJob(waiting, attachTo(call.services, job.id));
}

/** `Prefer: respond-async`: 202 with the job, or its answer when it came within `wait`. */
async function answerLater(call: EndpointCall): Promise<void> {
  const { ctx, services, preferences } = call;
  const { job } = await submitOrFind(call);
  const waiting: Waiting = { ...waitingFor(call, job), patienceMs: preferences.waitMs };
  if (preferences.waitMs > 0 && !hasEvents(waiting)) {
    if (await answerJob(waiting, attachTo(services, job.id))) return;
  }
  const state = await readAccepted(call, job);
  ctx.status = 202;
  ctx.set('preference-applied', 'respond-async');
  ctx.set('location', `/v1/jobs/job_${job.id}`);
  ctx.body = await jobObject(services, state, null);
}

/** Work in the background: its events where they are asked for, else at once the resource as it is now. */
async function answerInBackground(call: EndpointCall): Promise<void> {
  const { ctx, services, connection, endpoint } = call;
  const { job } = await submitOrFind(call);
  if (job.stream) return await answerStream(waitingFor(call, job), attachTo(services, job.id));
  const state = await readAccepted(call, job);
  ctx.body = await readResource(services, endpoint.view, state, connection);
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
      for (const name of ['x-request-id', 'request-id']) if (ctx.res.hasHeader(name)) ctx.set(name, `job_${bound.id}`);
      ctx.set('idempotent-replayed', 'true');
      if (submission.prepared !== undefined) await discardFiles(services, submission.prepared);
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

/** The limit in force is on unfinished requests; a place is free again when one of them ends. */
function showLimits({ res }: Context, { running, concurrency }: Limits): void {
  if (res.headersSent) return;
  res.setHeader('x-ratelimit-limit-requests', concurrency);
  res.setHeader('x-ratelimit-remaining-requests', Math.max(0, concurrency - running));
  res.setHeader('x-ratelimit-reset-requests', '1s');
}

function sha256(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}

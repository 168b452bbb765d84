import { ApiError } from '../../shared/errors.ts';
import { endJob } from '../../shared/jobs/end-job.ts';
import { finishWithError } from '../../shared/jobs/finish.ts';
import {
  createJobState,
  deleteJobState,
  type JobIdentity,
  type JobState,
  type StoredRequest,
} from '../../shared/jobs/job-state.ts';
import { freePlace, settleNow } from '../../shared/jobs/settle.ts';
import { deleteRequest, inlineLimit, type QueuedJob } from '../../shared/queue.ts';
import type { ClientConnection } from '../answers/client-connection.ts';
import type { PreparedRequest } from '../endpoints/prepared-request.ts';
import type { PreparedLargeRequest } from '../large-bodies.ts';
import { isRecordedFirst } from '../ledger/accepted-jobs.ts';
import type { Caller } from '../middleware/authenticate.ts';
import type { Services } from '../services.ts';
import { readViewOptions } from '../view-options.ts';
import { type AdmitReply, admit } from './admit.ts';

/** A request that is ready to be admitted. */
export interface Submission {
  readonly job: JobIdentity;
  readonly caller: Caller;
  /** Let go once it is queued: a caller who waits for its answer must not keep 20 MiB in memory. */
  prepared: PreparedRequest | PreparedLargeRequest | undefined;
  /** Where the request has been put already. */
  placed?: StoredRequest;
  readonly bodyHash: string;
  /** Whether the job is cancelled when its caller leaves. */
  readonly cancelsOnLeave: boolean;
  /**
   * Called when the job is admitted, before it is queued: the last moment at which the headers of the answer can be set,
   * for its first frame may come before the queue's own reply.
   */
  readonly onAdmitted: (limits: Limits) => void;
}

/** The limit in force: how many unfinished jobs the API key has, and may have. */
export interface Limits {
  readonly running: number;
  readonly concurrency: number;
}

/** What became of a submission. */
export interface Submitted {
  /** The job that will answer: the submitted one, or the one its idempotency key is bound to. */
  readonly jobId: string;
  readonly isReplay: boolean;
}

/** How long after its end a job may take to be settled, where nothing is amiss. */
const settlementMs = 30;

/** Requests above this many characters are not kept in the database. */
const keptRequestLimit = 1024 * 1024;

/** How long Redis may take to queue a request before its caller is answered 503. */
const queueingMs = 5000;

/**
 * Admits a request and puts it into its queue. The reader of its answer must be registered already.
 *
 * Once begun it is carried through to an end: when the caller leaves first, or Redis does not answer in time, the wait
 * ends, and what may have been made is cancelled when that is known. Not so a keyed job, which the caller's repeat finds,
 * and one that was to go on without its caller.
 * @throws ApiError 401, 422, 429, 503.
 */
export async function submit(
  services: Services,
  submission: Submission,
  connection: ClientConnection,
): Promise<Submitted> {
  let isAbandoned = false;
  const work = carryThrough(services, submission).then(async (submitted) => {
    if (isAbandoned && !submitted.isReplay) await endJob(services, submission.job, abandoned());
    return submitted;
  });
  // A refused request leaves no upload behind. (Once it is queued, nothing is left of `prepared`.)
  work.catch(() => submission.prepared && discardFiles(services, submission.prepared)).catch(() => undefined);
  try {
    return await connection.wait(work, queueingMs);
  } catch (error) {
    const isWanted = connection.hasLeft ? !submission.cancelsOnLeave : submission.job.idempotency !== '';
    isAbandoned = !isWanted;
    work.catch((cause) => services.log.debug({ err: cause, job: submission.job.id }, 'abandoned while queueing'));
    throw error;
  }
}

/** Removes the uploads of a request that comes to nothing. */
export async function discardFiles(
  { blobs }: Pick<Services, 'blobs'>,
  { files }: Pick<PreparedRequest, 'files'>,
): Promise<void> {
  await deleteRequest(blobs, { files: files ?? [] });
}

function abandoned(): ApiError {
  return new ApiError('cancelled', 'The request was abandoned before it was queued.');
}

async function carryThrough(services: Services, submission: Submission): Promise<Submitted> {
  const { job, caller } = submission;
  const concurrency = caller.concurrency ?? services.config.keyConcurrency;
  // A resource's request stands in its state, which is made with the admission.
  if (job.resource !== undefined) submission.placed = await placeRequest(services, submission);
  const admitting = askAdmission(services, submission, concurrency);
  // On one connection commands run in order. Where a refusal is not to be expected, the job is therefore sent right behind
  // its admission, which saves a round trip: a refused one has no state, and is dropped by the worker that takes it.
  const presumed = isPresumable(services, submission) ? presumeAdmitted(services, submission) : undefined;
  const { isFirst, ...admission } = await admitting;
  services.forecast.note(caller, admission, concurrency);
  if (admission.verdict !== 'admitted') {
    await withdraw(services, submission, presumed);
    if (admission.verdict === 'replay') return { jobId: admission.boundJobId, isReplay: true };
    throw refusal(admission, concurrency, services.config.queueWaitMs);
  }
  submission.onAdmitted({ running: admission.running, concurrency });
  if (isRecordedFirst(job)) await recordAccepted(services, submission);
  if (!(isFirst && (await presumed))) await enqueue(services, submission);
  submission.prepared = undefined;
  services.load.added(job.capability);
  return { jobId: job.id, isReplay: false };
}

/** Whether a job may be sent before its admission is known: on one Redis, without a blob to store first. */
function isPresumable(services: Services, { job, caller, prepared }: Submission): boolean {
  const isPlain = !isRecordedFirst(job) && !services.isCluster && prepared !== undefined && isInline(prepared);
  return (
    isPlain &&
    prepared.files === undefined &&
    services.load.shedding(job.capability) === undefined &&
    services.forecast.admits(caller)
  );
}

/**
 * Puts an admitted job into the database. It comes after the admission, so that what is refused never costs a write, and
 * before the queue, so that nothing is queued that the database does not know. Where that fails, the admission is taken
 * back: a repeat that waits for the job sees the error too, and no record is made of it.
 * @throws ApiError 503.
 */
async function recordAccepted(services: Services, { job, prepared }: Submission): Promise<void> {
  try {
    const viewOptions = await readViewOptions(services.blobs, job.viewOptions);
    await services.acceptedJobs.add({ ...job, viewOptions }, prepared && keptRequest(job, prepared));
  } catch (thrown) {
    const error = ApiError.from(thrown);
    const { redis, isCluster } = services;
    await finishWithError(redis, { jobId: job.id, retentionMs: 0, isCluster }, error);
    const ending = { outcome: 'failed', errorCode: error.code, began: false } as const;
    await settleNow(redis, { ...job, ...ending, jobId: job.id, retentionMs: 0, record: '' });
    throw error;
  }
}

/** The text of a request that is kept with its answer. */
function keptRequest(
  job: JobIdentity,
  { request, hasMedia }: PreparedRequest | PreparedLargeRequest,
): string | undefined {
  // A resource's comes from its state, with the answer.
  if (job.retentionMs === 0 || job.resource !== undefined || hasMedia || request.length > keptRequestLimit)
    return undefined;
  return typeof request === 'string' ? request : Buffer.from(request).toString();
}

/** Sends the job; answers whether it is in the queue. */
async function presumeAdmitted(services: Services, submission: Submission): Promise<boolean> {
  try {
    await services.queue(submission.job.capability).enqueue(await toQueuedJob(services, submission));
    return true;
  } catch {
    return false;
  }
}

/** Takes back what a refused request has left. */
async function withdraw(
  services: Services,
  { job, placed }: Submission,
  presumed: Promise<boolean> | undefined,
): Promise<void> {
  if (services.isCluster) await deleteJobState(services.redis, job.id);
  if (await presumed) await services.queue(job.capability).remove(job.id);
  if (placed?.requestBlob !== undefined) await services.blobs.delete(placed.requestBlob);
}

async function enqueue(services: Services, submission: Submission): Promise<void> {
  const { job } = submission;
  try {
    await services.queue(job.capability).enqueue(await toQueuedJob(services, submission));
  } catch (error) {
    const failure = new ApiError('service_unavailable', 'The request could not be queued.', { cause: error });
    // Where Redis refuses a part of this too, the sweeper does the rest, at the latest at the job's deadline.
    await endJob(services, job, failure).catch((cause) =>
      services.log.warn({ err: cause, job: job.id }, 'a job that could not be queued could not be ended'),
    );
    throw failure;
  }
}

/** `isFirst` tells that the first asking decided, so that what was sent behind it ran after the admission. */
async function askAdmission(
  services: Services,
  submission: Submission,
  concurrency: number,
): Promise<AdmitReply & { isFirst: boolean }> {
  const { job, caller, bodyHash } = submission;
  const { redis, processId, isCluster } = services;
  const ask = async (): Promise<AdmitReply> => {
    const shedding = services.load.shedding(job.capability);
    const call = { job, stored: submission.placed, concurrency, bodyHash, shedding };
    if (!isCluster) return await admit(redis, { ...call, reader: processId });
    // The state lies on another node. It may be written beside the admission: without a hold it means nothing.
    const admitting = admit(redis, { ...call, reader: undefined });
    const [reply] = await Promise.all([admitting, createJobState(redis, job, processId, submission.placed)]);
    return reply;
  };
  const first = await ask();
  if (first.verdict === 'concurrency') {
    // A caller that has just got an answer may come back before that job is settled, which follows its end closely.
    await new Promise((resolve) => setTimeout(resolve, settlementMs));
  } else if (first.verdict === 'unknown') {
    // Redis does not know the key (a first use, or it came back empty): the database decides.
    await services.callers.restoreFlag(caller);
  } else {
    return { ...first, isFirst: true };
  }
  const second = await ask();
  return { ...second, verdict: second.verdict === 'unknown' ? 'revoked' : second.verdict, isFirst: false };
}

function isInline({ request, hasMedia }: PreparedRequest | PreparedLargeRequest): boolean {
  return typeof request === 'string' && !hasMedia && request.length <= inlineLimit;
}

async function toQueuedJob(services: Services, submission: Submission): Promise<QueuedJob> {
  const { job, prepared, caller } = submission;
  const placed = submission.placed ?? (await placeRequest(services, submission));
  const drops = caller.unsupportedParameters === 'drop';
  return {
    ...job,
    ...(prepared?.files && { files: prepared.files }),
    ...(drops && { dropsUnsupported: true }),
    ...(prepared?.excludedRoutes?.length && { excludedRoutes: prepared.excludedRoutes }),
    ...placed,
  };
}

async function placeRequest(services: Services, { prepared }: Submission): Promise<StoredRequest> {
  if (prepared === undefined) throw new Error('a request is queued once only');
  const { request } = prepared;
  if (typeof request === 'string' && isInline(prepared)) return { request };
  return { requestBlob: await services.blobs.put(request) };
}

function refusal(admission: AdmitReply, concurrency: number, queueWaitMs: number): ApiError {
  switch (admission.verdict) {
    case 'reused':
      return new ApiError('idempotency_key_reused', 'This Idempotency-Key was used with a different request body.', {
        param: 'Idempotency-Key',
      });
    case 'concurrency':
      return new ApiError(
        'rate_limit_exceeded',
        `This API key has ${concurrency} unfinished requests, which is as many as it may have at a time.`,
        { retryAfterMs: 1000 },
      );
    case 'shed':
      return new ApiError('service_unavailable', 'The service is short of memory and takes no new work for now.', {
        retryAfterMs: 5000,
      });
    case 'queue_full':
      return new ApiError('service_unavailable', 'The queue is full. Try again later.', {
        retryAfterMs: Math.min(queueWaitMs, 10_000),
      });
    default:
      return new ApiError('invalid_api_key', 'The API key is not valid, or has been revoked.');
  }
}

/**
 * Frees an idempotency key whose job is not replayed, so that the caller's retry becomes a new job. The bound job's
 * settlement stays with its worker, which knows what it took, or with the sweeper.
 * @param bound undefined when it is gone
 */
export async function forgetBinding(
  services: Pick<Services, 'redis'>,
  { account, apiKeyId: own, idempotency }: JobIdentity,
  boundJobId: string,
  bound: JobState | undefined,
): Promise<void> {
  // Another key of the account may have bound it.
  const { apiKeyId = own, outcome = 'failed', errorCode, attempt = 0 } = bound ?? {};
  const ending = { outcome, errorCode, began: attempt > 0 };
  await freePlace(services.redis, { jobId: boundJobId, account, apiKeyId, idempotency, ...ending });
}

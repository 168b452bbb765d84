import type { Blobs } from '../../shared/blobs/blobs.ts';
import { Upload, type UploadRecord } from '../../shared/blobs/upload.ts';
import { isMedia } from '../../shared/capabilities/capability.ts';
import { ApiError } from '../../shared/errors.ts';
import { finishWithError } from '../../shared/jobs/attempt.ts';
import { deleteJobState, type JobIdentity, type StoredRequest } from '../../shared/jobs/job-state.ts';
import { type EndJobContext, endJob } from '../../shared/jobs/settlement/end-job.ts';
import { settleNow } from '../../shared/jobs/settlement/settle.ts';
import { deleteRequest, inlineLimit, type QueuedJob } from '../../shared/queue/queue.ts';
import { untilAccepted } from '../../shared/redis/script.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import type { ApiMetrics } from '../../shared/runtime/metrics.ts';
import type { Limits } from '../http/request-report.ts';
import type { AcceptedJobs } from '../ledger/accepted-jobs.ts';
import type { ParsedRequest } from '../pipeline/parsed-request.ts';
import { textOf } from '../pipeline/request-text.ts';
import type { ClientConnection } from '../replies/client-connection.ts';
import { readViewOptions } from '../replies/view.ts';
import type { AdmitCall, AdmitReply } from './admit.ts';
import {
  type Admission,
  type AskAdmissionDependencies,
  askAdmission,
  limitsOf,
  notAdmitted,
  untilAdmitted,
} from './ask-admission.ts';
import { refusal } from './refusal.ts';
import type { Submission } from './submission.ts';

/** Dependencies of admission and enqueueing. */
export interface AdmitJobDependencies extends EndJobContext, AskAdmissionDependencies {
  readonly metrics: ApiMetrics;
  readonly acceptedJobs: AcceptedJobs;
  readonly log: Logger;
}

/** What became of a submission. */
export interface Submitted {
  /** The job that provides the answer: the submitted one, or the one its idempotency key is bound to. */
  readonly jobId: string;
  readonly isReplay: boolean;
  /** The key's limits at its admission; undefined for a replay, which does not count against them. */
  readonly limits: Limits | undefined;
}

/** Longer requests (in characters) are not stored in the database. */
const keptRequestLimit = 1024 * 1024;

/** Time limit for queueing a request in Redis before its caller gets a 503. */
const queueingMs = 7000;
/**
 * Time after which a request is neither admitted nor queued, so that what got a 503 never runs. The difference to
 * `queueingMs` covers the reply's latency and the clocks' skew.
 */
const queueableMs = 4000;
/** How long to retry ending an unwanted job while Redis accepts no writes. */
const endingMs = 60_000;
/** How long Redis may be away before requests are refused at once, so that most wait through a restart. */
const awayMs = 3000;

/**
 * Admits a request and puts it into its queue. The reader of its answer must be registered before.
 *
 * Once started, it runs to an end: when the caller disconnects first, or Redis does not respond in time, the wait ends,
 * nothing further is admitted or queued, and a job that may exist is cancelled once that is known. Exceptions are keyed
 * jobs, which the caller's repeat finds, and jobs that continue without their caller.
 * @throws ApiError 401, 422, 429, 503.
 */
export async function admitAndEnqueue(
  services: AdmitJobDependencies,
  submission: Submission,
  connection: ClientConnection,
): Promise<Submitted> {
  const wait = { isAbandoned: false, giveUpAt: performance.now() + queueableMs };
  const work = carryThrough(services, submission, wait);
  try {
    return await connection.wait(work, queueingMs);
  } catch (error) {
    const isWanted = connection.hasLeft ? !submission.cancelsOnLeave : submission.job.idempotency !== '';
    wait.isAbandoned = !isWanted;
    work.catch((cause) =>
      services.log.debug({ err: cause, job: submission.job.id }, 'queueing a job failed after its caller left'),
    );
    throw error;
  }
}

/** Deletes the uploads of a failed request. */
export async function discardUploads(
  { blobs }: { readonly blobs: Blobs },
  account: string,
  uploads: ParsedRequest['files'],
): Promise<void> {
  if (uploads === undefined || uploads.length === 0) return;
  await deleteRequest(blobs, { account, uploads: recordsOf(uploads) });
}

/** @throws Error for anything that was not made by the reader of forms. */
function recordsOf(uploads: readonly Upload[]): UploadRecord[] {
  return uploads.map((upload) => {
    if (!(upload instanceof Upload)) throw new Error('an upload that no form has brought');
    return upload.record;
  });
}

/** Ends a job of whose answer nothing will come. Its caller may have been answered by then: `admitAndEnqueue` bounds their wait. */
async function endUnwanted(services: AdmitJobDependencies, job: JobIdentity, error: ApiError): Promise<void> {
  await untilAccepted(() => endJob(services, job, error), endingMs);
}

async function carryThrough(
  services: AdmitJobDependencies,
  submission: Submission,
  wait: { readonly isAbandoned: boolean; readonly giveUpAt: number },
): Promise<Submitted> {
  try {
    if (services.clock.isAway(awayMs)) throw notAdmitted();
    const submitted = await admitAndQueue(services, submission, wait.giveUpAt);
    if (wait.isAbandoned && !submitted.isReplay) {
      const error = new ApiError('cancelled', 'The request was abandoned before it was queued.');
      await endUnwanted(services, submission.job, error);
    }
    return submitted;
  } catch (error) {
    // A refused request leaves no upload behind. (Once it is queued, `parsed` is released.)
    const { parsed, job } = submission;
    if (parsed !== undefined) discardUploads(services, job.account, parsed.files).catch(() => undefined);
    throw error;
  }
}

async function admitAndQueue(
  services: AdmitJobDependencies,
  submission: Submission,
  giveUpAt: number,
): Promise<Submitted> {
  const { job } = submission;
  // A resource's request is part of its state, which is made with the admission.
  if (job.resource !== undefined) submission.placed = await placeRequest(services, submission);
  const admission = await admitted(services, submission, giveUpAt);
  const { reply } = admission;
  services.metrics.admissions.inc({ capability: job.capability, verdict: reply.verdict });
  if (reply.verdict !== 'admitted') {
    await withdraw(services, submission);
    if (reply.verdict === 'replay') return { jobId: reply.detail, isReplay: true, limits: undefined };
    throw refusal(admission, services, submission);
  }
  services.load.added(job);
  if (isRecordedFirst(job)) await recordAccepted(services, submission);
  if (!reply.isQueued) await enqueue(services, submission, reply, giveUpAt);
  submission.parsed = undefined;
  submission.share?.close();
  return { jobId: job.id, isReplay: false, limits: limitsOf(admission, services.config) };
}

/** The admission. Where it cannot be had, nothing is left of the request. */
async function admitted(services: AdmitJobDependencies, submission: Submission, giveUpAt: number): Promise<Admission> {
  try {
    return await askAdmission(services, submission, queuedAtOnce(services, submission), giveUpAt);
  } catch (error) {
    await withdraw(services, submission);
    throw error;
  }
}

/** What the queue gets of a job that is queued with its admission: on one Redis, where nothing is to be stored before. */
function queuedAtOnce(services: AdmitJobDependencies, submission: Submission): AdmitCall['queued'] {
  const { job, parsed } = submission;
  if (services.isCluster || isRecordedFirst(job) || parsed === undefined) return undefined;
  const { request } = parsed;
  if (typeof request !== 'string' || !isInline(parsed)) return undefined;
  const { uploads, dropsUnsupported, excludedRoutes, fee, trace } = queuedBeside(submission);
  return { request, uploads, dropsUnsupported, excludedRoutes, fee, trace };
}

/**
 * Inserts an admitted job into the database. This follows the admission, so that refused requests cost no write, and
 * precedes the queue, so that every queued job is in the database. On failure the admission is undone: a repeat waiting for
 * the job gets the error, too, and no record is made.
 * @throws ApiError 503.
 */
async function recordAccepted(services: AdmitJobDependencies, { job, parsed }: Submission): Promise<void> {
  try {
    const viewOptions = await readViewOptions(services.blobs.ofRecords(job.account), job.viewOptions);
    await services.acceptedJobs.add({ ...job, viewOptions }, parsed && keptRequest(job, parsed));
  } catch (thrown) {
    const error = ApiError.from(thrown);
    const { redis, isCluster } = services;
    await finishWithError(redis, { jobId: job.id, retentionMs: 0, isCluster }, error);
    const ending = { outcome: 'failed', errorCode: error.code, began: false } as const;
    await settleNow(redis, {
      ...job,
      ...ending,
      jobId: job.id,
      retentionMs: 0,
      record: '',
      cost: undefined,
      tokens: undefined,
    });
    throw error;
  }
}

/** The text of a request that is stored with its answer. */
function keptRequest(job: JobIdentity, { request, hasMedia }: ParsedRequest): string | undefined {
  // A resource's request is stored from its state, with the answer.
  if (job.retentionMs === 0 || job.resource !== undefined || hasMedia || request.length > keptRequestLimit)
    return undefined;
  return textOf(request);
}

/** Takes back what a refused request has left. */
async function withdraw(services: AdmitJobDependencies, { job, placed }: Submission): Promise<void> {
  if (services.isCluster) await deleteJobState(services.redis, job.id);
  if (placed?.requestBlob !== undefined) await services.blobs.of(job.account).delete(placed.requestBlob);
}

async function enqueue(
  services: AdmitJobDependencies,
  submission: Submission,
  { hasPriority, lowered }: Pick<AdmitReply, 'hasPriority' | 'lowered'>,
  giveUpAt: number,
): Promise<void> {
  const { job } = submission;
  let placed = submission.placed;
  try {
    placed ??= await placeRequest(services, submission);
    const queued = { ...job, ...queuedBeside(submission), ...placed, ...(lowered > 0 && { outputLimit: lowered }) };
    const queue = services.queue(job.capability);
    const notAfter = services.clock.at(giveUpAt);
    const verdict = await untilAdmitted(() => queue.enqueue(queued, hasPriority, notAfter), giveUpAt);
    if (verdict === 'late') throw new Error('Redis came to it too late');
  } catch (error) {
    const failure = new ApiError('service_unavailable', 'The request could not be queued. Retry it.', {
      reason: 'queue_unavailable',
      cause: error,
    });
    try {
      await endUnwanted(services, job, failure);
      // Only now, because a queue that accepted the job, with its reply lost, runs it until it has ended.
      await deleteRequest(services.blobs, { ...job, ...placed });
    } catch (cause) {
      // If Redis refuses part of this, too, the sweeper completes it, at the latest at the job's deadline.
      services.log.warn({ err: cause, job: job.id }, 'ending a job that failed to queue failed');
    }
    throw failure;
  }
}

function isInline({ request, hasMedia }: ParsedRequest): boolean {
  return typeof request === 'string' && !hasMedia && request.length <= inlineLimit;
}

type QueuedBeside = Pick<QueuedJob, 'uploads' | 'dropsUnsupported' | 'excludedRoutes' | 'fee' | 'trace'>;

/** The queue's data in addition to a job and its request. */
function queuedBeside({ parsed, caller, trace }: Submission): QueuedBeside {
  return {
    uploads: parsed?.files?.length ? recordsOf(parsed.files) : undefined,
    dropsUnsupported: caller.unsupportedParameters === 'drop' ? true : undefined,
    excludedRoutes: parsed?.excludedRoutes?.length ? parsed.excludedRoutes : undefined,
    fee: parsed?.extent?.fee,
    trace,
  };
}

async function placeRequest(services: AdmitJobDependencies, { parsed, job }: Submission): Promise<StoredRequest> {
  if (parsed === undefined) throw new Error('a request is queued once only');
  const { request } = parsed;
  if (typeof request === 'string' && isInline(parsed)) return { request };
  const content = typeof request === 'string' ? request : request.parts;
  return { requestBlob: await services.blobs.of(job.account).put(content) };
}

/**
 * Whether a job must be in the database before it is accepted: kept answers (asynchronous, keyed, background) and media
 * work. A response in the foreground need not be: like any plain answer it must not wait for a database that is down.
 */
function isRecordedFirst(job: Pick<JobIdentity, 'retentionMs' | 'capability' | 'resource'>): boolean {
  return isMedia[job.capability] || (job.retentionMs > 0 && job.resource !== 'foreground');
}

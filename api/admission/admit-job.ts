import type { Blobs } from '../../shared/blobs/blobs.ts';
import { Upload, type UploadRecord } from '../../shared/blobs/upload.ts';
import { ApiError } from '../../shared/errors.ts';
import { finishWithError } from '../../shared/jobs/finish.ts';
import { deleteJobState, type JobIdentity, type JobState, type StoredRequest } from '../../shared/jobs/job-state.ts';
import type { EndJobContext } from '../../shared/jobs/settlement/end-job.ts';
import { endJob } from '../../shared/jobs/settlement/end-job.ts';
import { freeSlot, settleNow } from '../../shared/jobs/settlement/settle.ts';
import { deleteRequest, inlineLimit, type QueuedJob } from '../../shared/queue/queue.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import { untilAccepted } from '../../shared/redis/redis-refusal.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import type { AcceptedJobs } from '../ledger/accepted-jobs.ts';
import { isRecordedFirst } from '../ledger/accepted-jobs.ts';
import type { ParsedLargeRequest } from '../pipeline/large-bodies/large-bodies.ts';
import type { ParsedRequest } from '../pipeline/parsed-request.ts';
import type { ClientConnection } from '../replies/client-connection.ts';
import { readViewOptions } from '../replies/view-options.ts';
import type { AdmitCall, AdmitReply } from './admit.ts';
import type { AskAdmissionDependencies } from './ask-admission.ts';
import { type Admission, askAdmission, limitsOf, notAdmitted, refusal, untilAdmitted } from './ask-admission.ts';
import type { Limits } from './limit-headers.ts';
import type { Submission } from './submission.ts';

/** Dependencies of admission and enqueueing. */
export interface AdmitJobDependencies extends EndJobContext, AskAdmissionDependencies {
  readonly acceptedJobs: AcceptedJobs;
  readonly log: Logger;
}

/** What became of a submission. */
export interface Submitted {
  /** The job that will answer: the submitted one, or the one its idempotency key is bound to. */
  readonly jobId: string;
  readonly isReplay: boolean;
  /** The limits of its key as they were at its admission; undefined for a replay, which takes nothing of them. */
  readonly limits: Limits | undefined;
}

/** Requests above this many characters are not kept in the database. */
const keptRequestLimit = 1024 * 1024;

/** How long Redis may take to queue a request before its caller is answered 503. */
const queueingMs = 7000;
/**
 * After so long a request is neither admitted nor queued any more, so that what was answered 503 is never run. What is less
 * than `queueingMs` is for the reply's way, and for what the clocks are apart.
 */
const queueableMs = 4000;
/** How long a job that nobody waits for is tried to be ended while Redis takes no writes. */
const endingMs = 60_000;
/** Redis may be away for so long before requests are refused at once: most wait through a restart of it. */
const awayMs = 3000;

/**
 * Admits a request and puts it into its queue. The reader of its answer must be registered already.
 *
 * Once begun it is carried through to an end: when the caller leaves first, or Redis does not answer in time, the wait
 * ends, nothing is admitted or queued any more, and what may have been made is cancelled when that is known. Not so a keyed
 * job, which the caller's repeat finds, and one that was to go on without its caller.
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

/** Removes the uploads of a request of an account that comes to nothing. */
export async function discardUploads(
  { blobs }: { readonly blobs: Blobs },
  account: string,
  uploads: ParsedRequest['files'],
): Promise<void> {
  if (uploads === undefined || uploads.length === 0) return;
  await deleteRequest(blobs, { account, uploads: recordsOf(uploads) });
}

/** @throws Error for what a form's reader has not made: nothing else is an upload. */
function recordsOf(uploads: readonly Upload[]): UploadRecord[] {
  return uploads.map((upload) => {
    if (!(upload instanceof Upload)) throw new Error('an upload that no form has brought');
    return upload.record;
  });
}

function abandoned(): ApiError {
  return new ApiError('cancelled', 'The request was abandoned before it was queued.');
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
    if (wait.isAbandoned && !submitted.isReplay) await endUnwanted(services, submission.job, abandoned());
    return submitted;
  } catch (error) {
    // A refused request leaves no upload behind. (Once it is queued, nothing is left of `parsed`.)
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
  // A resource's request stands in its state, which is made with the admission.
  if (job.resource !== undefined) submission.placed = await placeRequest(services, submission);
  const admission = await admitted(services, submission, giveUpAt);
  const { reply } = admission;
  if (reply.verdict !== 'admitted') {
    await withdraw(services, submission);
    if (reply.verdict === 'replay') return { jobId: reply.detail, isReplay: true, limits: undefined };
    throw refusal(admission, services, submission.parsed?.unpriced);
  }
  services.load.added(job.capability);
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
  const { uploads, dropsUnsupported, excludedRoutes, fee } = queuedBeside(submission);
  return { request, uploads, dropsUnsupported, excludedRoutes, fee };
}

/**
 * Puts an admitted job into the database. It comes after the admission, so that what is refused never costs a write, and
 * before the queue, so that nothing is queued that the database does not know. Where that fails, the admission is taken
 * back: a repeat that waits for the job sees the error too, and no record is made of it.
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

/** The text of a request that is kept with its answer. */
function keptRequest(job: JobIdentity, { request, hasMedia }: ParsedRequest | ParsedLargeRequest): string | undefined {
  // A resource's comes from its state, with the answer.
  if (job.retentionMs === 0 || job.resource !== undefined || hasMedia || request.length > keptRequestLimit)
    return undefined;
  return typeof request === 'string' ? request : Buffer.from(request).toString();
}

/** Takes back what a refused request has left. */
async function withdraw(services: AdmitJobDependencies, { job, placed }: Submission): Promise<void> {
  if (services.isCluster) await deleteJobState(services.redis, job.id);
  if (placed?.requestBlob !== undefined) await services.blobs.of(job.account).delete(placed.requestBlob);
}

async function enqueue(
  services: AdmitJobDependencies,
  submission: Submission,
  { turn, lowered }: Pick<AdmitReply, 'turn' | 'lowered'>,
  giveUpAt: number,
): Promise<void> {
  const { job } = submission;
  let placed = submission.placed;
  try {
    placed ??= await placeRequest(services, submission);
    const queued = { ...job, ...queuedBeside(submission), ...placed, ...(lowered > 0 && { outputLimit: lowered }) };
    const queue = services.queue(job.capability);
    const verdict = await untilAdmitted(() => queue.enqueue(queued, turn, services.clock.at(giveUpAt)), giveUpAt);
    if (verdict === 'late') throw new Error('Redis came to it too late');
  } catch (error) {
    const failure = new ApiError('service_unavailable', 'The request could not be queued. Retry it.', { cause: error });
    try {
      await endUnwanted(services, job, failure);
      // Only now: a queue that took the job, and whose reply was lost, has it run as long as it has no end.
      await deleteRequest(services.blobs, { ...job, ...placed });
    } catch (cause) {
      // Where Redis refuses a part of this too, the sweeper does the rest, at the latest at the job's deadline.
      services.log.warn({ err: cause, job: job.id }, 'ending a job that failed to queue failed');
    }
    throw failure;
  }
}

function isInline({ request, hasMedia }: ParsedRequest | ParsedLargeRequest): boolean {
  return typeof request === 'string' && !hasMedia && request.length <= inlineLimit;
}

/** What the queue gets beside a job and its request. */
function queuedBeside({
  parsed,
  caller,
}: Submission): Pick<QueuedJob, 'uploads' | 'dropsUnsupported' | 'excludedRoutes' | 'fee'> {
  return {
    uploads: parsed?.files?.length ? recordsOf(parsed.files) : undefined,
    dropsUnsupported: caller.unsupportedParameters === 'drop' ? true : undefined,
    excludedRoutes: parsed?.excludedRoutes?.length ? parsed.excludedRoutes : undefined,
    fee: parsed?.extent?.fee,
  };
}

async function placeRequest(services: AdmitJobDependencies, { parsed, job }: Submission): Promise<StoredRequest> {
  if (parsed === undefined) throw new Error('a request is queued once only');
  const { request } = parsed;
  if (typeof request === 'string' && isInline(parsed)) return { request };
  return { requestBlob: await services.blobs.of(job.account).put(request) };
}

/**
 * Frees an idempotency key whose job is not replayed, so that the caller's retry becomes a new job. The bound job's
 * settlement stays with its worker, which knows what it took, or with the sweeper.
 * @param bound undefined when it is gone
 */
export async function forgetBinding(
  services: { readonly redis: RedisClient },
  { account, apiKeyId: own, idempotency }: JobIdentity,
  boundJobId: string,
  bound: JobState | undefined,
): Promise<void> {
  // Another key of the account may have bound it.
  const { apiKeyId = own, outcome = 'failed', errorCode, attempt = 0 } = bound ?? {};
  const ending = { outcome, errorCode, began: attempt > 0 };
  await freeSlot(services.redis, { jobId: boundJobId, account, apiKeyId, idempotency, ...ending });
}

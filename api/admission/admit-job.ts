import type { Blobs } from '../../shared/blobs/blobs.ts';
import { Upload, type UploadRecord } from '../../shared/blobs/upload.ts';
import { ApiError } from '../../shared/errors.ts';
import { readerOf } from '../../shared/jobs/inbox.ts';
import {
  createJobState,
  deleteJobState,
  type JobIdentity,
  newState,
  type StoredRequest,
} from '../../shared/jobs/job-state.ts';
import { type EndJobContext, endJob } from '../../shared/jobs/settlement/end-job.ts';
import { deleteRequest, inlineLimit, type QueuedJob } from '../../shared/queue/queue.ts';
import { untilAccepted } from '../../shared/redis/script.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import type { ApiMetrics } from '../../shared/runtime/metrics.ts';
import type { Limits } from '../http/request-report.ts';
import type { AcceptedJobs } from '../ledger/accepted-jobs.ts';
import type { ParsedRequest } from '../pipeline/parsed-request.ts';
import type { ClientConnection } from '../replies/client-connection.ts';
import type { AdmitCall, AdmitReply } from './admit.ts';
import {
  type Admission,
  type AskAdmissionDependencies,
  askAdmission,
  expectedInputTokens,
  isMadeWhenQueued,
  isRecordedFirst,
  limitsOf,
  notAdmitted,
  untilAdmitted,
} from './ask-admission.ts';
import { FlexLaneFullError, flexTerms } from './flex-lane.ts';
import { placeInLine } from './place-in-line.ts';
import { recordAccepted } from './record-accepted.ts';
import { notQueued, refusal } from './refusal.ts';
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
  /** Whether the idempotency key was used for a request with another body. */
  readonly isReused?: boolean;
  /** The key's limits at its admission; undefined for a replay, which does not count against them. */
  readonly limits: Limits | undefined;
}

/** Time limit for queueing a request in Redis before its caller gets a 503. */
export const queueingMs = 7000;
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
  connection: Pick<ClientConnection, 'wait' | 'hasLeft'>,
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

/** Deletes the uploads of a failed request. What cannot be deleted is swept: its caller is told why it failed. */
export async function discardUploads(
  { blobs }: { readonly blobs: Blobs },
  account: string,
  uploads: ParsedRequest['files'],
): Promise<void> {
  if (uploads === undefined || uploads.length === 0) return;
  await deleteRequest(blobs, { account, uploads: recordsOf(uploads) }).catch(() => undefined);
}

/** Lets go of a request that is queued, or has the job of an equal one: nobody who waits for an answer keeps 20 MiB in memory. */
export function releaseRequest(submission: Submission): void {
  submission.parsed = undefined;
  submission.share?.close();
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
    if (services.redis.status !== 'ready' && services.clock.isSilent(awayMs)) throw notAdmitted();
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
  if (job.resource !== undefined) submission.stored = await storeRequest(services, submission);
  const admission = await admitted(services, submission, giveUpAt);
  const { reply } = admission;
  services.metrics.admissions.inc({ capability: job.capability, verdict: reply.verdict });
  if (reply.verdict !== 'admitted') {
    await withdraw(services, submission);
    const isReused = reply.verdict === 'reused';
    if (reply.verdict === 'replay' || isReused) {
      return { jobId: reply.detail, isReplay: true, isReused, limits: undefined };
    }
    throw refusal(admission, services, submission);
  }
  services.load.added(submission.job);
  if (waitsForDatabase(submission)) await recordAccepted(services, submission);
  if (!reply.isQueued) await enqueue(services, submission, reply, giveUpAt);
  releaseRequest(submission);
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

/** Whether a job must be in the database before it is queued. What a key's setting caches must not: it is to fail no request. */
function waitsForDatabase({ job, isCachedByKey }: Submission): boolean {
  return !isCachedByKey && isRecordedFirst(job);
}

/** What the queue gets of a job that is queued with its admission: on one Redis, where nothing is to be stored before. */
function queuedAtOnce(services: AdmitJobDependencies, submission: Submission): AdmitCall['queued'] {
  const { job, parsed } = submission;
  if (services.isCluster || waitsForDatabase(submission) || job.lane !== undefined || parsed === undefined)
    return undefined;
  const { request } = parsed;
  if (typeof request !== 'string' || !isInline(parsed)) return undefined;
  return { request, ...queuedBeside(submission) };
}

/** Takes back what a refused request has left. */
async function withdraw(services: AdmitJobDependencies, { job, stored }: Submission): Promise<void> {
  if (services.isCluster && !isMadeWhenQueued(job, true)) await deleteJobState(services.redis, job.id);
  if (stored?.requestBlob === undefined) return;
  // What cannot be deleted is swept: its caller is told why it was refused.
  await services.blobs
    .of(job.account)
    .delete(stored.requestBlob)
    .catch(() => undefined);
}

async function enqueue(
  services: AdmitJobDependencies,
  submission: Submission,
  { hasPriority, queueTerms, lowered, maxCost }: Pick<AdmitReply, 'hasPriority' | 'queueTerms' | 'lowered' | 'maxCost'>,
  giveUpAt: number,
): Promise<void> {
  const { job } = submission;
  let stored = submission.stored;
  try {
    stored ??= await storeRequest(services, submission);
    const queued = {
      ...{ ...job, ...queuedBeside(submission), ...stored, ...(lowered > 0 && { outputLimit: lowered }) },
      ...(maxCost !== undefined && { maxCost }),
      ...((hasPriority || job.lane !== undefined) && (await placeInLine(services, submission, queueTerms))),
    };
    const queue = services.queue(job);
    const notAfter = services.clock.at(giveUpAt);
    const state = isMadeWhenQueued(job, services.isCluster) ? newState(job, readerOf(services.processId)) : [];
    const lane = job.lane === 'flex' ? flexTerms(services.config) : job.lane;
    const verdict = await untilAdmitted(() => queue.enqueue(queued, hasPriority, notAfter, state, lane), giveUpAt);
    if (verdict === 'full' || verdict === 'share') throw new FlexLaneFullError(verdict);
    if (verdict === 'late') throw new Error('Redis came to it too late');
  } catch (error) {
    const failure = error instanceof FlexLaneFullError ? error : notQueued(error);
    try {
      // Without a state there is nothing to end, and the hold would stay until it is swept.
      if (isMadeWhenQueued(job, services.isCluster)) {
        await createJobState(services.redis, job, readerOf(services.processId));
      }
      await endUnwanted(services, job, failure);
      // Only now, because a queue that accepted the job, with its reply lost, runs it until it has ended.
      await deleteRequest(services.blobs, { ...job, ...stored });
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

type QueuedBeside = Pick<
  QueuedJob,
  | 'uploads'
  | 'dropsUnsupported'
  | 'addsCacheBreakpoints'
  | 'excludedRoutes'
  | 'inputTokens'
  | 'fee'
  | 'affinity'
  | 'trace'
>;

/** The queue's data in addition to a job and its request. */
function queuedBeside({ parsed, caller, affinity, trace }: Submission): QueuedBeside {
  const { imageInputs, mediaBytes, fee } = parsed?.extent ?? {};
  return {
    uploads: parsed?.files?.length ? recordsOf(parsed.files) : undefined,
    dropsUnsupported: caller.unsupportedParameters === 'drop' ? true : undefined,
    addsCacheBreakpoints: caller.cacheBreakpoints === 'automatic' && parsed?.marksCache !== true ? true : undefined,
    excludedRoutes: parsed?.excludedRoutes?.length ? parsed.excludedRoutes : undefined,
    inputTokens: imageInputs || mediaBytes ? expectedInputTokens(parsed) : undefined,
    fee,
    affinity,
    trace,
  };
}

/** Puts a request where its job's record has it: inline, or (over 64 KiB, or with media) in a blob. */
async function storeRequest(services: AdmitJobDependencies, { parsed, job }: Submission): Promise<StoredRequest> {
  if (parsed === undefined) throw new Error('a request is queued once only');
  const { request } = parsed;
  if (typeof request === 'string' && isInline(parsed)) return { request };
  const content = typeof request === 'string' ? request : request.parts;
  const requestBlob = await services.blobs.of(job.account).put(content);
  return { requestBlob, requestBytes: bytesOf(content) };
}

function bytesOf(content: string | readonly Uint8Array[]): number {
  return typeof content === 'string'
    ? Buffer.byteLength(content)
    : content.reduce((sum, { byteLength }) => sum + byteLength, 0);
}

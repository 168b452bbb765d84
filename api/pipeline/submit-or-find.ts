import { type JobIdentity, type JobState, readJobState } from '../../shared/jobs/job-state.ts';
import { freesIdempotencyKey } from '../../shared/jobs/settlement/settle.ts';
import { type AdmitJobDependencies, admitAndEnqueue, discardUploads } from '../admission/admit-job.ts';
import { forgetBinding } from '../admission/forget-binding.ts';
import { ownBinding } from '../admission/own-binding.ts';
import type { Submission } from '../admission/submission.ts';
import { untilQueued } from '../admission/unqueued-job.ts';
import { readMs } from '../bounds/bounded-reads.ts';
import { nameJob, showLimits } from '../http/request-report.ts';
import type { StoredJobs } from '../ledger/stored-jobs.ts';
import type { ClientConnection } from '../replies/client-connection.ts';
import { expired } from '../replies/unreadable-answer.ts';
import type { Context } from '../state.ts';
import { showCache } from './answer-cache.ts';
import { keyReused } from './request-fields.ts';

/** Dependencies of keyed requests. */
export interface SubmitOrFindDependencies extends AdmitJobDependencies {
  readonly storedJobs: StoredJobs;
}

/** A request to submit, and its client. */
interface SubmissionCall {
  readonly ctx: Context;
  readonly services: SubmitOrFindDependencies;
  readonly submission: Submission;
  readonly connection: ClientConnection;
}

/**
 * Submits a request; a repeat of an earlier one (same idempotency key, same body) becomes that one's job, and so does a request
 * whose answer is cached.
 */
export async function submitOrFind({
  ctx,
  services,
  submission,
  connection,
}: SubmissionCall): Promise<{ job: JobIdentity; isReplay: boolean }> {
  for (;;) {
    const submitted = await admitAndEnqueue(services, submission, connection);
    if (!submitted.isReplay) {
      nameJob(ctx, submission.job.id);
      showLimits(ctx, submitted.limits);
      if (submission.cacheMs !== undefined) showCache(ctx, 'miss');
      return { job: submission.job, isReplay: false };
    }
    const live = await connection.wait(readJobState(services.redis, submitted.jobId), readMs);
    const bound = live ?? (await findEnded({ services, submission, connection }, submitted.jobId));
    if (bound === 'unreadable') {
      submission.replaces = submitted.jobId;
      continue;
    }
    if (bound !== undefined && bound.account !== submission.job.account) {
      // Another account's: it is neither shown nor told of.
      submission.job = { ...submission.job, idempotency: ownBinding(submission.job) };
      continue;
    }
    if (submitted.isReused) {
      await discardOwnUploads(services, submission);
      throw keyReused();
    }
    // Its owner has deleted what it made. A repeat does not make it again.
    if (bound?.isDeleted) {
      await discardOwnUploads(services, submission);
      throw expired();
    }
    if (bound !== undefined && isReplayed({ ...bound, idempotency: submission.job.idempotency })) {
      if (
        isTooOld(services, submission, bound) ||
        waitsLonger(submission, bound) ||
        (live === undefined && (await isGone(services, submission, bound)))
      ) {
        submission.replaces = submitted.jobId;
        continue;
      }
      if (live !== undefined && (await untilQueued(services, connection, live))) continue;
      nameJob(ctx, bound.id);
      if (submission.cacheMs !== undefined)
        return { job: takeCached(ctx, services, submission, bound), isReplay: true };
      ctx.set('idempotent-replayed', 'true');
      await discardOwnUploads(services, submission);
      return { job: bound, isReplay: true };
    }
    // Redis lost the job but not the key, or the settlement that frees the key is pending: the request is new again.
    await forgetBinding(services, submission.job, submitted.jobId, live);
  }
}

/**
 * Finds a job that Redis has dropped; `unreadable`: the database does not show it for now, and the request can do without it.
 * @throws ApiError 503 if it cannot.
 */
async function findEnded(
  { services, submission, connection }: Omit<SubmissionCall, 'ctx'>,
  jobId: string,
): Promise<JobState | 'unreadable' | undefined> {
  try {
    return await connection.wait(services.storedJobs.findEnded(jobId), readMs);
  } catch (error) {
    if (submission.isCachedByKey && connection.ended === undefined) return 'unreadable';
    throw error;
  }
}

async function discardOwnUploads(
  services: SubmitOrFindDependencies,
  { job, parsed }: Pick<Submission, 'job' | 'parsed'>,
): Promise<void> {
  if (parsed !== undefined) await discardUploads(services, job.account, parsed.files);
}

/** Whether a cached answer is older than its caller wants. One that is still being made is not. */
function isTooOld(
  { clock }: SubmitOrFindDependencies,
  { cacheMs }: Submission,
  { outcome, createdAt }: JobState,
): boolean {
  return cacheMs !== undefined && outcome !== undefined && clock.now() - createdAt > cacheMs;
}

/** Whether a cached answer is still to be made, by a job that waits with a lower priority than its caller has. */
function waitsLonger({ cacheMs, job }: Submission, { outcome, beganAt, lane }: JobState): boolean {
  return cacheMs !== undefined && outcome === undefined && beganAt === undefined && rankOf(lane) < rankOf(job.lane);
}

function rankOf(lane: JobIdentity['lane']): number {
  return lane === 'flex' ? 0 : lane === 'high' ? 2 : 1;
}

/** Whether a cached answer that Redis has dropped is gone from the database, too: large ones stay as long as files do. */
async function isGone(
  { storedJobs }: SubmitOrFindDependencies,
  { cacheMs, isCachedByKey }: Submission,
  bound: JobState,
): Promise<boolean> {
  if (cacheMs === undefined) return false;
  try {
    return (await storedJobs.findAnswer(bound)) === undefined;
  } catch (error) {
    // It cannot be read for now.
    if (isCachedByKey) return true;
    throw error;
  }
}

/** The job whose answer is cached, to be shown as this request wants it: streamed or not, with its usage or without. */
function takeCached(
  ctx: Context,
  { clock }: SubmitOrFindDependencies,
  submission: Submission,
  bound: JobState,
): JobIdentity {
  const { stream, viewOptions } = submission.job;
  // An answer that is complete only has to be read.
  if (bound.outcome !== undefined) submission.ownDeadlineAt = undefined;
  showCache(ctx, 'hit');
  ctx.set('age', String(Math.max(0, Math.floor((clock.now() - bound.createdAt) / 1000))));
  ctx.state.isFree = true;
  return { ...bound, stream, viewOptions };
}

/** Whether a repeat of a job's request gets its answer. */
function isReplayed(job: JobState): boolean {
  const { outcome } = job;
  return outcome === undefined || !freesIdempotencyKey({ ...job, outcome, began: job.attempt > 0 });
}

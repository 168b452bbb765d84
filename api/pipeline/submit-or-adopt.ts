import { type JobIdentity, type JobState, readJobState } from '../../shared/jobs/job-state.ts';
import { type AdmitJobDependencies, admitAndEnqueue, releaseRequest } from '../admission/admit-job.ts';
import type { Submission } from '../admission/submission.ts';
import { isUnqueued } from '../admission/unqueued-job.ts';
import { readMs } from '../bounds/bounded-reads.ts';
import { nameJob, showLimits } from '../http/request-report.ts';
import { type AdoptJobDependencies, adoptJob } from '../replies/adopt-job.ts';
import { cancelAbandoned, type LeaveJobDependencies } from '../replies/cancel-job.ts';
import type { ClientConnection } from '../replies/client-connection.ts';
import type { Context } from '../state.ts';

/** Dependencies of retries. */
export interface SubmitOrAdoptDependencies extends AdmitJobDependencies, AdoptJobDependencies, LeaveJobDependencies {}

/** A retry to submit, and its client. */
interface RetryCall {
  readonly ctx: Context;
  readonly services: SubmitOrAdoptDependencies;
  readonly submission: Submission;
  readonly connection: ClientConnection;
}

/**
 * Submits a retry that a client library makes on its own; it adopts the job of an earlier try that runs, or has completed, and
 * that nobody reads. Everything else is a new request: the earlier try failed, or its caller may still read it.
 */
export async function submitOrAdopt(call: RetryCall): Promise<JobIdentity> {
  const { ctx, services, submission, connection } = call;
  let submitted = await admitAndEnqueue(services, submission, connection);
  if (submitted.isReplay) {
    const adopting = adopt(call, submitted.jobId);
    try {
      const job = await connection.wait(adopting, readMs);
      if (job !== undefined) return job;
    } catch (error) {
      // It may be adopted all the same, and is left again then.
      void adopting
        .then((job) => job && cancelAbandoned(services, { ...submission, job }, connection, undefined))
        .catch(() => undefined);
      throw error;
    }
    submission.isRetry = false;
    submitted = await admitAndEnqueue(services, submission, connection);
  }
  nameJob(ctx, submission.job.id);
  showLimits(ctx, submitted.limits);
  return submission.job;
}

/** Adopts the job of an earlier try, if nobody reads it. */
async function adopt({ ctx, services, submission }: RetryCall, jobId: string): Promise<JobState | undefined> {
  const { job } = submission;
  const first = await readJobState(services.redis, jobId);
  // One that its api process was killed before it queued would only end as lost.
  if (first === undefined || (await isUnqueued(services, first))) return undefined;
  if (!(await adoptJob(services, jobId, job.id))) return undefined;
  nameJob(ctx, jobId);
  ctx.set('idempotent-replayed', 'true');
  releaseRequest(submission);
  return first;
}

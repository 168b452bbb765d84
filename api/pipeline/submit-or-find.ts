import { type JobIdentity, type JobState, readJobState } from '../../shared/jobs/job-state.ts';
import { freesIdempotencyKey } from '../../shared/jobs/settlement/settle.ts';
import { type AdmitJobDependencies, admitAndEnqueue, discardUploads } from '../admission/admit-job.ts';
import { forgetBinding } from '../admission/forget-binding.ts';
import type { Submission } from '../admission/submission.ts';
import { nameJob, showLimits } from '../http/request-report.ts';
import type { StoredJobs } from '../ledger/stored-jobs.ts';
import type { ClientConnection } from '../replies/client-connection.ts';
import type { Context } from '../state.ts';

/** Dependencies of keyed requests. */
export interface SubmitOrFindDependencies extends AdmitJobDependencies {
  readonly storedJobs: StoredJobs;
}

/** How long Redis or the database may take to show a job. */
const readMs = 5000;

/** A request to submit, and its client. */
interface SubmissionCall {
  readonly ctx: Context;
  readonly services: SubmitOrFindDependencies;
  readonly submission: Submission;
  readonly connection: ClientConnection;
}

/** Submits a request; a repeat of an earlier one (same idempotency key, same body) becomes that one's job. */
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
      return { job: submission.job, isReplay: false };
    }
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
    // Redis lost the job but not the key, or the settlement that frees the key is pending: the request is new again.
    await forgetBinding(services, submission.job, submitted.jobId, live);
  }
}

/** Whether a repeat of a job's request gets its answer. */
function isReplayed(job: JobState): boolean {
  const { outcome } = job;
  return outcome === undefined || !freesIdempotencyKey({ ...job, outcome, began: job.attempt > 0 });
}

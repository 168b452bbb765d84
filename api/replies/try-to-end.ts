import type { ApiError } from '../../shared/errors.ts';
import type { EndGuard } from '../../shared/jobs/attempt.ts';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import { type EndJobContext, endJob } from '../../shared/jobs/settlement/end-job.ts';
import type { Logger } from '../../shared/runtime/log.ts';

/** Dependencies of cancelling a job whose caller left. */
export interface CancelJobDependencies extends EndJobContext {
  readonly log: Logger;
}

/** Ends a job; resolves when that is done, or has failed, which is logged. */
export async function tryToEnd(
  services: CancelJobDependencies,
  job: JobIdentity,
  error: ApiError,
  guard?: EndGuard,
): Promise<void> {
  try {
    await endJob(services, job, error, guard);
  } catch (thrown) {
    services.log.warn({ err: thrown, job: job.id }, 'cancelling a job failed');
  }
}

import { ApiError } from '../../shared/errors.ts';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import type { EndJobContext } from '../../shared/jobs/settlement/end-job.ts';
import { endJob } from '../../shared/jobs/settlement/end-job.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';
import type { Submission } from '../admission/submission.ts';
import type { ClientConnection } from '../replies/client-connection.ts';

/** Dependencies of cancelling a job whose caller left. */
export interface CancelJobDependencies extends EndJobContext {
  readonly log: Logger;
}

/** How long to wait for Redis to cancel an abandoned job; the cancellation continues after that. */
const cancelMs = 1000;

/**
 * Cancels a plain job when its client has disconnected, or is handed over, because nobody would read its answer (or because
 * its caller will retry it). A started stream that is handed over continues: its caller resumes it.
 * @param reply whether the caller can resume its part of it
 */
export async function cancelAbandoned(
  services: CancelJobDependencies,
  { job, cancelsOnLeave }: Pick<Submission, 'job' | 'cancelsOnLeave'>,
  connection: ClientConnection,
  reply: { readonly canBeResumed: boolean },
): Promise<void> {
  if (connection.ended === undefined || !cancelsOnLeave || (!connection.hasLeft && reply.canBeResumed)) return;
  const ended = tryToEnd(services, job, new ApiError('cancelled', 'The caller left.'));
  // A process that shuts down must not close its Redis connection before this is done.
  await withTimeout(ended, cancelMs);
}

/** Cancels a job whose answer cannot be shown to its caller. @param failure undefined if it can be shown */
export function cancelUnreadable(
  services: CancelJobDependencies,
  { job, cancelsOnLeave }: Pick<Submission, 'job' | 'cancelsOnLeave'>,
  failure: ApiError | undefined,
): void {
  if (failure !== undefined && cancelsOnLeave) void tryToEnd(services, job, failure);
}

/** Ends a job; resolves when that is done, or has failed, which is logged. */
export async function tryToEnd(services: CancelJobDependencies, job: JobIdentity, error: ApiError): Promise<void> {
  try {
    await endJob(services, job, error);
  } catch (thrown) {
    services.log.warn({ err: thrown, job: job.id }, 'cancelling a job failed');
  }
}

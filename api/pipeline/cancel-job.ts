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

/** How long Redis may take to cancel a job whose caller has left; it goes on after that. */
const cancelMs = 1000;

/**
 * The client left, or is sent away: a plain job is cancelled, because nobody would read its answer (or because its caller
 * will send it again). A stream that was begun and is handed over goes on: its caller resumes it.
 * @param reply whether the caller can resume what it has of it
 */
export async function cancelAbandoned(
  services: CancelJobDependencies,
  { job, cancelsOnLeave }: Pick<Submission, 'job' | 'cancelsOnLeave'>,
  connection: ClientConnection,
  reply: { readonly canBeResumed: boolean },
): Promise<void> {
  if (connection.ended === undefined || !cancelsOnLeave || (!connection.hasLeft && reply.canBeResumed)) return;
  const ended = tryToEnd(services, job, new ApiError('cancelled', 'The caller left.'));
  // A process that stops must not close its Redis connection in the middle of it.
  await withTimeout(ended, cancelMs);
}

/** What cannot be shown to the one it is made for need not be made to its end. @param failure undefined: it can be shown */
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

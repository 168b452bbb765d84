import type { ApiError } from '../../shared/errors.ts';
import { callerLeft } from '../../shared/jobs/end-errors.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';
import type { Submission } from '../admission/submission.ts';
import type { ClientConnection } from './client-connection.ts';
import type { LeftJobs } from './left-jobs.ts';
import { type CancelJobDependencies, tryToEnd } from './try-to-end.ts';

/** Dependencies of cancelling a job whose caller left, where a retry may come back for it. */
export interface LeaveJobDependencies extends CancelJobDependencies {
  readonly leftJobs: LeftJobs;
}

/** How long to wait for Redis to cancel an abandoned job; the cancellation continues after that. */
const cancelMs = 1000;

/**
 * Cancels a plain job when its client has disconnected, or is handed over, because nobody would read its answer (or because
 * its caller will retry it). A started stream that is handed over continues: its caller resumes it. An answer of which nothing
 * was sent waits a little, if it is not streamed and its client library may come back for it.
 * @param reply whether the caller can resume its part of it; undefined: it had not begun
 */
export async function cancelAbandoned(
  services: LeaveJobDependencies,
  { job, cancelsOnLeave }: Pick<Submission, 'job' | 'cancelsOnLeave'>,
  connection: Pick<ClientConnection, 'ended' | 'hasLeft' | 'isAnswered'>,
  reply: { canBeResumed(): boolean } | undefined,
): Promise<void> {
  if (connection.ended === undefined) return;
  const mayReturn = connection.hasLeft && job.retryName !== undefined && !connection.isAnswered;
  // A stream has its head after 15 s at the latest: what is lost with it so early is little, and often it is stopped on purpose.
  const isLeft = mayReturn && !(cancelsOnLeave && job.stream);
  if (!isLeft && (!cancelsOnLeave || (!connection.hasLeft && reply?.canBeResumed()))) return;
  const ended = isLeft ? services.leftJobs.leave(job, cancelsOnLeave) : tryToEnd(services, job, callerLeft());
  // A process that shuts down must not close its Redis connection before this is done.
  await withTimeout(ended, cancelMs);
}

/** Cancels a job whose answer cannot be shown to its caller. */
export function cancelUnreadable(
  services: CancelJobDependencies,
  { job, cancelsOnLeave }: Pick<Submission, 'job' | 'cancelsOnLeave'>,
  failure: ApiError,
): void {
  if (cancelsOnLeave) void tryToEnd(services, job, failure);
}

import type { Config } from '../../shared/config/config.ts';
import { ApiError } from '../../shared/errors.ts';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import { type EndJobContext, endJob } from '../../shared/jobs/settlement/end-job.ts';
import type { RedisClock } from '../../shared/redis/redis-clock.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';
import type { Submission } from '../admission/submission.ts';
import type { ClientConnection } from '../replies/client-connection.ts';

/** Dependencies of `WaitLimits`. */
export interface WaitLimitsDependencies extends EndJobContext {
  readonly config: Config;
  readonly clock: RedisClock;
  readonly log: Logger;
}

/** How long to wait for Redis to end a job before its caller gets a response without it. */
const localGraceMs = 2000;

/**
 * Limits the wait of a job's caller: to its deadline (504), and, while no worker has started it, to the queue limit (503);
 * both by Redis's clock, like all that several processes decide. Ending goes through Redis like every end, so a worker that
 * starts at the same moment and this process agree; the error then arrives as the job's last frame. Only while Redis is
 * unavailable is the caller answered directly.
 */
export class WaitLimits {
  readonly #services: WaitLimitsDependencies;
  readonly #job: JobIdentity;
  readonly #reply: { fail(error: ApiError): void };
  #queueCheckAt: number;
  #endedAt: number | undefined;

  constructor(services: WaitLimitsDependencies, job: JobIdentity, reply: { fail(error: ApiError): void }) {
    this.#services = services;
    this.#job = job;
    this.#reply = reply;
    this.#queueCheckAt = job.createdAt + services.config.queueWaitMs;
  }

  tick(): void {
    const now = this.#services.clock.now();
    if (now >= this.#job.deadlineAt) {
      const error = new ApiError('timeout', 'The request was not answered within its deadline.');
      if (this.#endedAt === undefined) this.#end(error, 'overdue');
      this.#endedAt ??= now;
      if (now > this.#endedAt + localGraceMs) this.#reply.fail(error);
    } else if (now >= this.#queueCheckAt) {
      // Refused if a worker has started the job; then nothing remains to be checked.
      this.#queueCheckAt = Number.POSITIVE_INFINITY;
      this.#end(
        new ApiError('service_unavailable', 'No worker was free to run the request. Try again later.', {
          retryAfterMs: 5000,
        }),
        'queued',
      );
    }
  }

  #end(error: ApiError, guard: 'queued' | 'overdue'): void {
    endJob(this.#services, this.#job, error, guard)
      .then(({ verdict }) => {
        // Redis's clock is slightly behind this process's estimate of it: retried.
        if (verdict === 'refused' && guard === 'overdue') this.#endedAt = undefined;
      })
      .catch((cause) => this.#services.log.warn({ err: cause, job: this.#job.id }, 'ending an overdue job failed'));
  }
}

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

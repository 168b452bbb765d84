import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import { jobKeys } from '../../shared/redis/keys.ts';
import { loadScript, untilAccepted } from '../../shared/redis/script.ts';
import { type CancelJobDependencies, callerLeft, tryToEnd } from './try-to-end.ts';

/**
 * How long a job waits for a retry once its caller is gone: the first two retries of OpenAI's and Anthropic's libraries come
 * within 0.5 s and 1 s.
 */
export const patienceMs = 2000;

const script = loadScript<number>(new URL('./leave-job.lua', import.meta.url));

/** Jobs whose callers have left this process without an answer, and may come back for it with a retry. */
export class LeftJobs {
  readonly #services: CancelJobDependencies;
  readonly #timers = new Map<JobIdentity, NodeJS.Timeout>();
  #isClosed = false;

  constructor(services: CancelJobDependencies) {
    this.#services = services;
  }

  /** Notes that a job's caller has left. @param isCancelled whether the job is cancelled if no retry adopts it in time */
  async leave(job: JobIdentity, isCancelled: boolean): Promise<void> {
    const { redis, log } = this.#services;
    try {
      await untilAccepted(() => script(redis, [jobKeys.state(job.id)], []));
    } catch (error) {
      log.warn({ err: error, job: job.id }, 'noting that the caller of a job has left failed');
      if (isCancelled) await tryToEnd(this.#services, job, callerLeft());
      return;
    }
    if (!isCancelled) return;
    if (this.#isClosed) await this.#cancel(job);
    else this.#timers.set(job, setTimeout(() => void this.#cancel(job), patienceMs).unref());
  }

  /** Cancels the jobs that still wait: nobody would do it later. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#timers.keys()].map((job) => this.#cancel(job)));
  }

  async #cancel(job: JobIdentity): Promise<void> {
    clearTimeout(this.#timers.get(job));
    this.#timers.delete(job);
    await tryToEnd(this.#services, job, callerLeft(), 'left');
  }
}

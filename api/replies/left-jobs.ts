import { randomHex } from '../../shared/ids.ts';
import { callerLeft } from '../../shared/jobs/end-errors.ts';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import { jobKeys } from '../../shared/redis/keys.ts';
import { loadScript, untilAccepted } from '../../shared/redis/script.ts';
import { type CancelJobDependencies, tryToEnd } from './try-to-end.ts';

/**
 * How long a job waits for a retry once its caller is gone: the first two retries of OpenAI's and Anthropic's libraries come
 * within 0.5 s and 1 s.
 */
export const patienceMs = 2000;

const script = loadScript<number>(new URL('./leave-job.lua', import.meta.url));

/** Jobs whose callers have left this process without an answer, and may come back for it with a retry. */
export class LeftJobs {
  readonly #services: CancelJobDependencies;
  readonly #waiting = new Map<JobIdentity, { readonly timer: NodeJS.Timeout; readonly mark: string }>();
  #isClosed = false;

  constructor(services: CancelJobDependencies) {
    this.#services = services;
  }

  /** Notes that a job's caller has left. @param isCancelled whether the job is cancelled if no retry adopts it in time */
  async leave(job: JobIdentity, isCancelled: boolean): Promise<void> {
    const { redis, log } = this.#services;
    const mark = randomHex(8);
    try {
      await untilAccepted(() => script(redis, [jobKeys.state(job.id)], [mark]));
    } catch (error) {
      log.warn({ err: error, job: job.id }, 'noting that the caller of a job has left failed');
      if (isCancelled) await tryToEnd(this.#services, job, callerLeft());
      return;
    }
    if (!isCancelled) return;
    if (this.#isClosed) {
      await this.#cancel(job, mark);
      return;
    }
    const timer = setTimeout(() => void this.#cancel(job, mark), patienceMs).unref();
    this.#waiting.set(job, { timer, mark });
  }

  /** Cancels the jobs that still wait: nobody would do it later. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#waiting].map(([job, { mark }]) => this.#cancel(job, mark)));
  }

  /** Cancels a job that no retry has adopted. If one has, and has left as well, the job waits for the next one since then. */
  async #cancel(job: JobIdentity, mark: string): Promise<void> {
    clearTimeout(this.#waiting.get(job)?.timer);
    this.#waiting.delete(job);
    await tryToEnd(this.#services, job, callerLeft(), `left ${mark}`);
  }
}

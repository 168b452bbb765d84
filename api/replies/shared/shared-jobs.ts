import type { ApiError } from '../../../shared/errors.ts';
import { randomHex } from '../../../shared/ids.ts';
import { callerLeft } from '../../../shared/jobs/end-errors.ts';
import { readerOf } from '../../../shared/jobs/inbox.ts';
import type { JobIdentity } from '../../../shared/jobs/job-state.ts';
import { journaledScript } from '../../../shared/jobs/journal/write-journal.ts';
import { runningProcesses, silenceMs } from '../../../shared/queue/process-registry.ts';
import { jobKeys } from '../../../shared/redis/keys.ts';
import type { RedisClock } from '../../../shared/redis/redis-clock.ts';
import { loadScript, untilAccepted } from '../../../shared/redis/script.ts';
import { type CancelJobDependencies, tryToEnd } from '../try-to-end.ts';

/** Dependencies of `SharedJobs`. */
export interface SharedJobsDependencies extends CancelJobDependencies {
  readonly clock: RedisClock;
  /** This process's name on Redis channels. */
  readonly processId: string;
}

/** When processes that still had sharers are looked at: those that were dead by then are known to be. */
const checkMs = silenceMs + 1000;

const joinScript = loadScript<number>(new URL('./join-shared.lua', import.meta.url), journaledScript);
const leaveScript = loadScript<string[] | null>(new URL('./leave-shared.lua', import.meta.url));

/** How a sharer leaves a job. */
export interface Leaving {
  /** How the job ends if it was the last one. */
  readonly error: ApiError;
  /** How long the job waits for another sharer, if it was the last one, in ms. */
  readonly patienceMs?: number;
}

/**
 * Jobs whose answers several requests wait for, each of which ends only itself: a job is cancelled when the last one has left. Of
 * each job this process counts its own requests (the sharers), and its state in Redis has the processes with at least one.
 * Joining and cancelling are decided by scripts on that state, so a request that joins while the last one leaves gets its answer.
 *
 * A process that dies leaves its requests in the state. Whoever leaves a job with requests of other processes looks after a while
 * whether these still run; if none does, it cancels the job. A job whose last sharers die with their process goes on to its end,
 * like any other. Where Redis refuses to note that a request has left, it is told again after the same while.
 */
export class SharedJobs {
  readonly #services: SharedJobsDependencies;
  readonly #reader: string;
  /** Sharers of this process by the id of their job. */
  readonly #sharers = new Map<string, number>();
  /** Numbers the joins of this process, so that a leave that Redis sees late takes back none that followed it. */
  #joins = 0;
  /** Jobs to be looked at again, by id: one look for all who have left one. */
  readonly #looks = new Map<string, NodeJS.Timeout>();
  /** Jobs without a sharer that wait for another one, by id. */
  readonly #waiting = new Map<string, { readonly timer: NodeJS.Timeout; readonly cancel: () => Promise<void> }>();
  #isClosed = false;

  constructor(services: SharedJobsDependencies) {
    this.#services = services;
    this.#reader = readerOf(services.processId);
  }

  /**
   * Counts the request that makes a job. Returns the field of the job's state by which others know of it. If the job is not
   * made, `release` follows.
   * @param isKept whether the job goes on even if all its readers leave
   */
  make(jobId: string, isKept: boolean): readonly [name: string, value: string] {
    this.#count(jobId);
    const number = String(++this.#joins);
    return isKept ? ['kept', '1'] : [`sharer:${this.#reader}`, number];
  }

  /** Joins a job that runs; its request is counted. Returns false if it has ended, or is gone. */
  async join(job: JobIdentity, isKept: boolean): Promise<boolean> {
    this.#count(job.id);
    const state = [jobKeys.state(job.id)];
    try {
      const { redis } = this.#services;
      const joined = await untilAccepted(() => joinScript(redis, state, [this.#reader, ++this.#joins, isKept ? 1 : 0]));
      if (joined === 0) this.release(job.id);
      return joined === 1;
    } catch (error) {
      // It may have joined all the same, if only the reply was lost.
      void this.leave(job, { error: callerLeft() });
      throw error;
    }
  }

  /** Forgets a request of a job that has ended, or was not made. Returns whether it was the process's last one. */
  release(jobId: string): boolean {
    const left = (this.#sharers.get(jobId) ?? 1) - 1;
    if (left > 0) this.#sharers.set(jobId, left);
    else this.#sharers.delete(jobId);
    return left <= 0;
  }

  /** A request leaves a job before its end, which is cancelled if it was the last one. */
  async leave(job: JobIdentity, { error, patienceMs = 0 }: Leaving): Promise<void> {
    if (!this.release(job.id)) return;
    const mark = randomHex(8);
    const left = await this.#leave(job, mark);
    if (left === undefined) return;
    if (left === 'unknown' || left.length > 0) this.#lookLater(job, error);
    else if (patienceMs > 0 && !this.#isClosed) this.#wait(job, error, patienceMs, mark);
    else await this.#cancel(job, error);
  }

  /** A request leaves a job that goes on to its end, as its client will come back for the answer. */
  async leaveGoing(job: JobIdentity): Promise<void> {
    const { redis, log } = this.#services;
    const args = [this.#reader, ++this.#joins, 1];
    await untilAccepted(() => joinScript(redis, [jobKeys.state(job.id)], args)).catch((error) =>
      log.warn({ err: error, job: job.id }, 'keeping a shared job whose reader is handed over failed'),
    );
    this.release(job.id);
  }

  /** Cancels the jobs that wait for another sharer: nobody would do it later. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const timer of this.#looks.values()) clearTimeout(timer);
    await Promise.all([...this.#waiting.values()].map(({ cancel }) => cancel()));
  }

  #count(jobId: string): void {
    this.#sharers.set(jobId, (this.#sharers.get(jobId) ?? 0) + 1);
  }

  /**
   * Notes that this process has no sharers left. Returns those that have; undefined if the job is not to be cancelled, `unknown` if
   * Redis did not take the note.
   */
  async #leave(
    job: JobIdentity,
    mark: string = randomHex(8),
    dead: readonly string[] = [],
  ): Promise<string[] | undefined | 'unknown'> {
    const { redis, log } = this.#services;
    // Only of joins before this: one that follows may be seen by Redis before a call that is repeated.
    const last = this.#joins;
    try {
      const left = await untilAccepted(() =>
        leaveScript(redis, [jobKeys.state(job.id)], [this.#reader, last, mark, ...dead]),
      );
      return left ?? undefined;
    } catch (error) {
      log.warn({ err: error, job: job.id }, 'leaving a shared job failed');
      return 'unknown';
    }
  }

  /** Cancels a job, if it still has no sharer. @param mark of a leave: and has had none since then */
  async #cancel(job: JobIdentity, error: ApiError, mark?: string): Promise<void> {
    await tryToEnd(this.#services, job, error, mark === undefined ? 'unshared' : `unshared ${mark}`);
  }

  #wait(job: JobIdentity, error: ApiError, ms: number, mark: string): void {
    clearTimeout(this.#waiting.get(job.id)?.timer);
    const cancel = async (): Promise<void> => {
      clearTimeout(timer);
      this.#waiting.delete(job.id);
      await this.#cancel(job, error, mark);
    };
    const timer = setTimeout(() => void cancel(), ms).unref();
    this.#waiting.set(job.id, { timer, cancel });
  }

  #lookLater(job: JobIdentity, error: ApiError): void {
    if (this.#isClosed || this.#looks.has(job.id)) return;
    const look = (): void => {
      this.#looks.delete(job.id);
      void this.#cancelIfDead(job, error);
    };
    this.#looks.set(job.id, setTimeout(look, checkMs).unref());
  }

  /** Cancels a job whose last sharers are of dead processes. */
  async #cancelIfDead(job: JobIdentity, error: ApiError): Promise<void> {
    // Its own ones look themselves, once they leave.
    if (this.#sharers.has(job.id)) return;
    const left = await this.#leave(job);
    if (left === undefined) return;
    if (left === 'unknown') {
      this.#lookLater(job, error);
      return;
    }
    const { redis, clock, log } = this.#services;
    try {
      const running = new Set((await runningProcesses(redis, clock.now())).map(readerOf));
      if (left.some((reader) => running.has(reader))) return;
      await this.#leave(job, undefined, left);
      await this.#cancel(job, error);
    } catch (thrown) {
      log.warn({ err: thrown, job: job.id }, 'looking for the sharers of a job failed');
    }
  }
}

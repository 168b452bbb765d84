import type { RoutedModel } from '../../shared/catalogue/catalogue.ts';
import type { Ownership } from '../../shared/jobs/append.ts';
import type { VendorTask } from '../../shared/jobs/vendor-task.ts';
import type { QueuedJob } from '../../shared/queue/queue.ts';
import type { JobItem } from '../../shared/redis/job-id-map.ts';

/** Why a run stops before its vendor has finished. */
export type StopReason = Exclude<Ownership, 'ok'> | 'requeued' | 'overdue' | Error;

/** One claim of a job from the queue by this process, from before `begin` to its end. */
export class JobRun implements JobItem<JobRun> {
  next: JobRun | undefined;
  readonly job: QueuedJob;
  /** The attempt that this run owns, once `begin` has returned it. */
  attempt: number | undefined;
  /** When that attempt began, in ms since 1970. */
  beganAt: number | undefined;
  /** Name of the vendor that was called or polled last; '' before that. */
  vendor = '';
  /** The model by the route that was called last or that started its task; its prices determine the cost. */
  routed: RoutedModel | undefined;
  /** Vendor calls of the attempt; polls do not count. */
  calls = 0;
  /** The task that a vendor runs for the job, once it is stored. */
  task: VendorTask | undefined;
  /** The task's known progress when the run began, in percent. */
  progress = 0;
  /** When Redis last confirmed the ownership, in ms since 1970. */
  confirmedAt = Date.now();
  isRenewing = false;
  /** Why the run was stopped. */
  stopReason: StopReason | undefined;
  readonly #controller = new AbortController();

  constructor(job: QueuedJob) {
    this.job = job;
  }

  get jobId(): string {
    return this.job.id;
  }

  /** Vendor calls of the job so far. Each earlier attempt counts as one. */
  get callsInAll(): number {
    return (this.attempt ?? 1) - 1 + Math.max(1, this.calls);
  }

  /** Aborted when the run must stop. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The job no longer belongs to this run: it has ended, or another attempt owns it. This overrides any earlier reason to stop. */
  lose(reason: Exclude<Ownership, 'ok'>): void {
    this.stop(reason);
    this.stopReason = reason;
  }

  /** The process is shutting down: the job should be requeued if that is still possible. */
  requeue(): void {
    this.stop('requeued');
  }

  stop(reason: StopReason): void {
    if (this.stopReason !== undefined) return;
    this.stopReason = reason;
    this.#controller.abort(reason);
  }
}

import { Readable } from 'node:stream';
import type { AccountBlobs, Blobs } from '../../shared/blobs/blobs.ts';
import { extensionOf } from '../../shared/blobs/media-types.ts';
import { type Capability, repeatable } from '../../shared/capabilities/capability.ts';
import type { RoutedModel } from '../../shared/catalogue/catalogue.ts';
import type { ErrorCode } from '../../shared/errors.ts';
import type { Ownership } from '../../shared/jobs/append.ts';
import type { InboxListener } from '../../shared/jobs/inbox.ts';
import type { Outcome } from '../../shared/jobs/job-state.ts';
import { renewLeases } from '../../shared/jobs/leases/leases.ts';
import type { VendorTask } from '../../shared/jobs/vendor-task.ts';
import type { QueuedJob } from '../../shared/queue/queue.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import { JobIdMap, type JobItem } from '../../shared/runtime/collections.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import type { RouteTarget } from '../routing/route-plan.ts';
import type { CallFiles, OpenAnswer } from '../vendors/vendor.ts';
import type { MemoryHolder } from './request-memory.ts';

/** The spans of a run, see `RunTrace`. */
export interface RunSpans {
  within<Result>(work: () => Result): Result;
  call<Result>(target: RouteTarget, number: number, work: () => Promise<Result>): Promise<Result>;
  end(run: JobRun, firstAt: number | undefined): void;
}

/** Why a run stops before its vendor has finished. */
export type StopReason = Exclude<Ownership, 'ok'> | 'requeued' | 'overdue' | Error;

/**
 * The outcome of a claim. `done`: the job has ended or belongs to another worker. `requeued`: it returns to the queue. `parked`: it
 * waits for its vendor, and has left this worker.
 * Otherwise it returns after a pause in ms.
 */
export type RunOutcome = 'done' | 'requeued' | 'parked' | { readonly pauseMs: number };

/** One claim of a job from the queue by this process, from before `begin` to its end. */
export class JobRun implements JobItem<JobRun>, MemoryHolder {
  next: JobRun | undefined;
  readonly job: QueuedJob;
  /** Identifies the claim. */
  readonly claim: string;
  /** The route for whose capacity it has waited before; '' if it has not. */
  readonly parkedFor: string;
  /** The attempt that this run owns, once `begin` has returned it. */
  attempt: number | undefined;
  /** Attempts before that have called no vendor. */
  withdrawn = 0;
  /** When that attempt began, in ms since 1970. */
  beganAt: number | undefined;
  /** Name of the vendor that was called or polled last; '' before that. */
  vendor = '';
  /** The model by the route that was called last or that started its task; its prices determine the cost. */
  routed: RoutedModel | undefined;
  /** The model that replaces the requested one, by the last call; undefined: none does. */
  servedModel: string | undefined;
  /** Whether only one of its vendor's keys may serve it, that of the video that it remixes. */
  needsItsKey = false;
  /** Whether the last call of a vendor is under way; not between a failed one and the next. */
  isAtWork = false;
  /** Vendor calls of the attempt; polls do not count. */
  calls = 0;
  /** The answer of the last call while it comes in, of vendors that count it meanwhile. */
  openAnswer: OpenAnswer | undefined;
  /** When the first call of the attempt began, in ms of `performance.now()`. */
  calledAt: number | undefined;
  /** The task that a vendor runs for the job, once it is stored. */
  task: VendorTask | undefined;
  /** The task's known progress when the run began, in percent. */
  progress = 0;
  /** When Redis last confirmed the ownership, in ms of `performance.now()`: a clock that is put right must not end it. */
  confirmedAt = performance.now();
  /** Its vendor is silent: the last confirmation was a renewed lease. */
  isSilent = false;
  isRenewing = false;
  /** How this run has ended the job; undefined: it has not, or another process was faster. */
  end: { readonly outcome: Outcome; readonly errorCode: ErrorCode | undefined } | undefined;
  /** Writes its frames, once it has begun. */
  writer: { logNow(): void } | undefined;
  /** What it holds of the memory for requests, in bytes. */
  held = 0;
  /** Whether it keeps a long answer in memory. */
  holdsAnswer = false;
  /** Its spans, if its request is traced. */
  spans: RunSpans | undefined;
  /** Why the run was stopped. */
  stopReason: StopReason | undefined;
  readonly #controller = new AbortController();

  constructor(job: QueuedJob, claim = '', parkedFor = '') {
    this.job = job;
    this.claim = claim;
    this.parkedFor = parkedFor;
  }

  get jobId(): string {
    return this.job.id;
  }

  /** Vendor calls of the job so far. Each earlier attempt counts as one, unless it called none. */
  get callsInAll(): number {
    return (this.attempt ?? 1) - 1 - this.withdrawn + Math.max(1, this.calls);
  }

  /** Aborted when the run must stop. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Redis has confirmed the ownership. */
  confirm(isSilent: boolean): void {
    this.confirmedAt = performance.now();
    this.isSilent = isSilent;
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

/** The label of a run's vendor in metrics. */
export function vendorLabel({ vendor }: Pick<JobRun, 'vendor'>): string {
  return vendor === '' ? 'none' : vendor;
}

/** How long a job's log may stay if nothing ever ends the job, in ms. */
export function logLifetime(job: QueuedJob): number {
  return job.deadlineAt - job.createdAt + job.retentionMs + 60_000;
}

/** A lease is renewed when the log has not confirmed it for this long; well below the lease's length. */
const renewAfterMs = 3000;
const roundMs = 1000;
/** The jobs whose vendors stay silent are renewed together, in one round of so many: together they cost Redis little. */
const silentRounds = 3;

/** What became of the jobs of a process since it began to shut down. */
interface Drained {
  finished: number;
  /** Another worker goes on with them. */
  requeued: number;
  /** Their answers were cut, or it is unknown what their vendor did. */
  interrupted: number;
}

/** Whether another worker can go on with a requeued job; else the next claim ends it. */
function canGoOn({ attempt, task, job }: JobRun): boolean {
  return attempt === undefined || task !== undefined || repeatable[job.capability];
}

/** How many aborts of jobs that are not (yet) here are remembered. */
const maxAborted = 128;

/**
 * The jobs that this process runs. Receives their cancellations and renews their leases while their vendors are silent. A
 * job is registered before `begin`, so that no cancellation falls between the two. A job that is started by its claim may be
 * cancelled before the claim's reply arrives, which uses another connection: so aborts of unknown jobs, which have ended for
 * good, are remembered for a while.
 */
export class RunningJobs implements InboxListener {
  readonly #runs = new JobIdMap<JobRun>();
  /** A ring of the most recent ones. */
  readonly #aborted: string[] = [];
  #abortedNext = 0;
  /** Undefined while this process is not shutting down. */
  #drained: Drained | undefined;
  readonly #redis: RedisClient;
  readonly #log: Logger;
  readonly #timer: NodeJS.Timeout;
  #rounds = 0;

  constructor(redis: RedisClient, log: Logger) {
    this.#redis = redis;
    this.#log = log;
    this.#timer = setInterval(() => this.#renewDue(), roundMs);
    this.#timer.unref();
  }

  add(run: JobRun): void {
    this.#runs.add(run);
    if (this.#aborted.includes(run.jobId)) run.lose('ended');
  }

  /** @param outcome of the claim; undefined if it failed, and the job will be claimed again */
  delete(run: JobRun, outcome: RunOutcome | undefined): void {
    this.#runs.delete(run);
    if (this.#drained === undefined) return;
    if (outcome !== 'done') this.#drained[canGoOn(run) ? 'requeued' : 'interrupted']++;
    else this.#drained[run.stopReason === 'requeued' ? 'interrupted' : 'finished']++;
  }

  /** Number of jobs running here. */
  get size(): number {
    return this.#runs.size;
  }

  abort(jobId: string): void {
    let isHere = false;
    this.#runs.forEach(jobId, (run) => {
      isHere = true;
      run.lose('ended');
    });
    if (isHere) return;
    this.#aborted[this.#abortedNext] = jobId;
    this.#abortedNext = (this.#abortedNext + 1) % maxAborted;
  }

  /** The reader reads what it lacks from the log. */
  readerAdded(jobId: string): void {
    this.#runs.forEach(jobId, (run) => run.writer?.logNow());
  }

  /** An abort may have been missed: renewing every lease reveals the jobs that have ended. */
  resubscribed(): void {
    void this.#renew([...this.#runs]);
  }

  /** Whether this process is shutting down: what has not begun here begins elsewhere. */
  get isDraining(): boolean {
    return this.#drained !== undefined;
  }

  /**
   * This process is shutting down: requeues what another worker can go on with at once, which are polls of tasks. The others run
   * on, until `requeueAll`. (A job that waits for its lease is requeued by its own loop: its `begin` may be under way, and what
   * has begun is not repeated in each case.)
   * @returns how many run on, how many are requeued; and what became of all, which is complete once none runs
   */
  drain(): { readonly running: number; readonly requeued: number; readonly drained: Readonly<Drained> } {
    this.#drained ??= { finished: 0, requeued: 0, interrupted: 0 };
    let requeued = 0;
    for (const run of this.#runs) {
      if (run.task === undefined) continue;
      run.requeue();
      requeued++;
    }
    return { running: this.size - requeued, requeued, drained: this.#drained };
  }

  /** Stops every run because this process is shutting down; those without output are requeued. */
  requeueAll(): void {
    for (const run of this.#runs) run.requeue();
  }

  /** Number of running jobs of each capability. */
  counts(): ReadonlyMap<Capability, number> {
    const counts = new Map<Capability, number>();
    for (const { job } of this.#runs) counts.set(job.capability, (counts.get(job.capability) ?? 0) + 1);
    return counts;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #renewDue(): void {
    const now = performance.now();
    const isSilentRound = ++this.#rounds % silentRounds === 0;
    const due = [...this.#runs].filter(({ isSilent, confirmedAt }) =>
      isSilent ? isSilentRound : now - confirmedAt >= renewAfterMs,
    );
    if (due.length > 0) void this.#renew(due);
  }

  async #renew(runs: readonly JobRun[]): Promise<void> {
    const leased = runs.flatMap((run) => {
      const { attempt, jobId, isRenewing } = run;
      if (attempt === undefined || isRenewing) return [];
      run.isRenewing = true;
      return [{ run, jobId, attempt }];
    });
    await renewLeases(this.#redis, leased, ({ run }, ownership) => {
      run.isRenewing = false;
      if (ownership instanceof Error) this.#log.warn({ err: ownership, job: run.jobId }, 'renewing a lease failed');
      else if (ownership === 'ok') run.confirm(true);
      else run.lose(ownership);
    });
  }
}

/** The files of one call: blobs of its job's account, and of no other. */
export function callFiles(blobs: Blobs, account: string): CallFiles {
  const own = (): AccountBlobs => blobs.ofRecords(account);
  return {
    open: (upload) => own().read(upload.blob),
    save: async (content, type) => {
      const stream = content instanceof Uint8Array ? Readable.from([content]) : content;
      const { id, bytes } = await own().putStream(stream, { extension: extensionOf(type) });
      return { file: id, type, bytes };
    },
  };
}

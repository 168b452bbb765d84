import type { ServerResponse } from 'node:http';
import type { Config } from '../../shared/config/config.ts';
import { ApiError } from '../../shared/errors.ts';
import { callerLeft, overdue, startedTooLate } from '../../shared/jobs/end-errors.ts';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import { readJobProgress } from '../../shared/jobs/leases/leases.ts';
import { type EndJobContext, endJob } from '../../shared/jobs/settlement/end-job.ts';
import type { RedisClock } from '../../shared/redis/redis-clock.ts';
import { type SwapRemoveMember, SwapRemoveSet } from '../../shared/runtime/collections.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';
import type { FrameReceiver } from './frame-receiver.ts';

/** Time (ms) without progress after which sending a file is aborted: its storage may stall, too, not only its client. */
export const stalledMs = 60_000;

/** Requests to be released when this process stops and the time to finish them is up. */
export class Handover {
  readonly #connections = new SwapRemoveSet<ClientConnection>();
  readonly #drainListeners = new Set<() => void>();
  #isDraining = false;

  add(connection: ClientConnection): void {
    this.#connections.add(connection);
  }

  delete(connection: ClientConnection): void {
    this.#connections.delete(connection);
  }

  /** Number of running requests. */
  get size(): number {
    return this.#connections.size;
  }

  /** Calls `listener` when this process starts to stop, so that endless work ends. Returns a function that unsubscribes. */
  onDrain(listener: () => void): () => void {
    this.#drainListeners.add(listener);
    if (this.#isDraining) listener();
    return () => this.#drainListeners.delete(listener);
  }

  /** This process starts to stop: running requests may finish. */
  drain(): void {
    this.#isDraining = true;
    for (const listener of [...this.#drainListeners]) listener();
  }

  /** Ends the wait of every running request. */
  handOver(): void {
    for (const connection of this.#connections) connection.handOver();
  }
}

/**
 * The client's side of one request: ends every wait when the client disconnects, or when this process has to release it.
 * Supports one wait at a time.
 */
export class ClientConnection implements SwapRemoveMember {
  index = 0;
  /** Why waiting has ended, once it has. */
  ended: ApiError | undefined;
  readonly #response: ServerResponse;
  readonly #handover: Handover;
  readonly #onClose = (): void => {
    // 'close' follows every response; only before the response's end does it mean that the client disconnected.
    if (!this.#response.writableFinished) this.leave();
  };
  #reject: ((error: ApiError) => void) | undefined;

  constructor(response: ServerResponse, handover: Handover) {
    this.#response = response;
    this.#handover = handover;
    response.once('close', this.#onClose);
    handover.add(this);
    if (response.destroyed) this.#onClose();
  }

  /** Whether the head of the answer is sent. */
  get isAnswered(): boolean {
    return this.#response.headersSent;
  }

  /** Whether the client has disconnected (rather than been handed over). */
  get hasLeft(): boolean {
    return this.ended?.code === 'cancelled';
  }

  /**
   * Waits for some work, which continues even if the wait ends.
   * @param ms maximum wait, after which it rejects with `service_unavailable`
   * @throws ApiError `ended`, or the work's error.
   */
  wait<T>(work: Promise<T>, ms?: number): Promise<T> {
    if (this.ended !== undefined) {
      // It has begun. An error that nobody receives would end the process.
      work.catch(() => undefined);
      return Promise.reject(this.ended);
    }
    return new Promise<T>((resolve, reject) => {
      const timer = ms === undefined ? undefined : setTimeout(() => fail(late()), ms);
      const over = (): void => {
        clearTimeout(timer);
        if (this.#reject === fail) this.#reject = undefined;
      };
      const fail = (error: unknown): void => {
        over();
        reject(error);
      };
      this.#reject = fail;
      work.then((value) => {
        over();
        resolve(value);
      }, fail);
    });
  }

  /** The client has disconnected: every wait ends. */
  leave(): void {
    this.#end(callerLeft());
  }

  handOver(): void {
    this.#end(
      new ApiError('service_unavailable', 'The server is shutting down. Retry the request.', {
        reason: 'shutting_down',
        retryAfterMs: 1000,
      }),
    );
  }

  close(): void {
    this.#response.off('close', this.#onClose);
    this.#handover.delete(this);
  }

  #end(error: ApiError): void {
    if (this.ended !== undefined) return;
    this.ended = error;
    this.#reject?.(error);
  }
}

function late(): ApiError {
  return new ApiError('service_unavailable', 'The queue is unavailable. Try again later.', {
    reason: 'queue_unavailable',
    retryAfterMs: 2000,
  });
}

/** Dependencies of `WaitLimits`. */
export interface WaitLimitsDependencies extends EndJobContext {
  readonly config: Config;
  readonly clock: RedisClock;
  readonly log: Logger;
}

/** What limits a wait besides the job. */
export interface OwnLimits {
  /** When this caller gets its 504, if the job may take longer; a stream that has begun by then goes on. */
  readonly ownDeadlineAt?: number | undefined;
  /** Whether that ends the job, which goes on for nobody else. */
  readonly endsJob?: boolean;
  /** Whether it only follows a job that another request has made: that one's queue limit is not its own. */
  readonly isWatcher?: boolean;
}

/** How long to wait for Redis to end a job before its caller gets a response without it. */
const localGraceMs = 2000;

/**
 * Limits the wait of a job's caller: to its deadline (504), and, while no worker has started it, to the queue limit (503) and to
 * the time that it must start by (504); all by Redis's clock, like all that several processes decide. Ending goes through Redis
 * like every end, so a worker that starts at the same moment and this process agree; the error then arrives as the job's last
 * frame. Only while Redis is unavailable is the caller answered directly.
 */
export class WaitLimits {
  readonly #services: WaitLimitsDependencies;
  readonly #job: JobIdentity;
  readonly #reply: Pick<FrameReceiver, 'fail' | 'isOpen'>;
  readonly #endsJob: boolean;
  #ownDeadlineAt: number;
  #queueCheckAt: number;
  #startBy: number;
  #endedAt: number | undefined;

  constructor(
    services: WaitLimitsDependencies,
    job: JobIdentity,
    reply: Pick<FrameReceiver, 'fail' | 'isOpen'>,
    { ownDeadlineAt = Number.POSITIVE_INFINITY, endsJob = false, isWatcher = false }: OwnLimits = {},
  ) {
    this.#endsJob = endsJob;
    this.#ownDeadlineAt = ownDeadlineAt;
    this.#services = services;
    this.#job = job;
    this.#reply = reply;
    const { queueWaitMs, flexWaitMs } = services.config;
    const queueCheckAt = job.createdAt + queueWaitMs + (job.lane === 'flex' ? flexWaitMs : 0);
    this.#queueCheckAt = isWatcher ? Number.POSITIVE_INFINITY : queueCheckAt;
    this.#startBy = (isWatcher ? undefined : job.startBy) ?? Number.POSITIVE_INFINITY;
  }

  tick(): void {
    const now = this.#services.clock.now();
    if (this.#reply.isOpen) this.#ownDeadlineAt = Number.POSITIVE_INFINITY;
    const isOverdue = now >= this.#job.deadlineAt;
    if (isOverdue || (this.#endsJob && now >= this.#ownDeadlineAt)) {
      const error = overdue();
      if (this.#endedAt === undefined) this.#end(error, isOverdue ? 'overdue' : undefined);
      this.#endedAt ??= now;
      if (now > this.#endedAt + localGraceMs) this.#reply.fail(error);
    } else if (now >= this.#ownDeadlineAt) {
      this.#ownDeadlineAt = Number.POSITIVE_INFINITY;
      this.#failUnlessEnded().catch((cause) =>
        this.#services.log.error({ err: cause, job: this.#job.id }, 'ending an overdue answer failed'),
      );
    } else if (now >= this.#startBy) {
      this.#startBy = Number.POSITIVE_INFINITY;
      this.#end(startedTooLate(), 'uncalled');
    } else if (now >= this.#queueCheckAt) {
      // Refused if a worker has started the job; then nothing remains to be checked.
      this.#queueCheckAt = Number.POSITIVE_INFINITY;
      this.#end(
        new ApiError('service_unavailable', 'No worker was free to run the request. Try again later.', {
          reason: 'no_worker',
          retryAfterMs: 5000,
        }),
        'queued',
      );
    }
  }

  /** The caller's own time is up. An answer that is complete by then only has to be read. */
  async #failUnlessEnded(): Promise<void> {
    const asking = readJobProgress(this.#services.redis, { jobId: this.#job.id }).catch(() => undefined);
    const progress = await withTimeout(asking, localGraceMs);
    if (!progress?.hasEnded) this.#reply.fail(overdue());
  }

  #end(error: ApiError, guard: 'queued' | 'uncalled' | 'overdue' | undefined): void {
    endJob(this.#services, this.#job, error, guard)
      .then(({ verdict }) => {
        // Asked again: Redis's clock is slightly behind this process's estimate of it, or the job has its end, which a slow client is
        // yet to read.
        if (verdict !== 'gone' && (guard ?? 'overdue') === 'overdue') this.#endedAt = undefined;
      })
      .catch((cause) => this.#services.log.warn({ err: cause, job: this.#job.id }, 'ending an overdue job failed'));
  }
}

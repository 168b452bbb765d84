import { ApiError, type ErrorCode } from '../../errors.ts';
import type { QueuedJob } from '../../queue/queue.ts';
import { accountKeys } from '../../redis/keys.ts';
import type { RedisClient } from '../../redis/redis.ts';
import { loadScript } from '../../redis/script.ts';
import type { Logger } from '../../runtime/log.ts';
import { isOtherVersion } from '../../runtime/wire-version.ts';
import { interrupted, lostBeforeRun, overdue, startedTooLate } from '../end-errors.ts';
import { type JobState, readJobState } from '../job-state.ts';
import { readJobProgress } from '../leases/leases.ts';
import { type EndJobContext, endJob } from './end-job.ts';
import { countedByWorkersMs, readHoldMember, settledByWorkerMs, settlementOf, settleNow } from './settle.ts';

/** Interval between sweeps. */
const intervalMs = 2000;
/** When a hold is first inspected, and again after its job was found alive. */
export const sweepAfterMs = 10_000;
/** Time after a lease's expiry at which a begun job has no worker left that could take it over. */
const abandonedMs = 20_000;
/** Maximum number of holds of a tag inspected together. */
const batch = 100;
/** Maximum duration of a round while a tag has more due holds than `batch`. */
const roundMs = 10_000;

const dueHolds = loadScript<[now: string, ...members: string[]]>(new URL('./due-holds.lua', import.meta.url));

/** What the sweeper does about a job: settles it, releases its hold, queues it again, or ends it with this error. */
export type SweepAction = 'settled' | 'released' | 'requeued' | ErrorCode;

/** All of them that occur. */
export const sweepActions: readonly SweepAction[] = [
  ...(['settled', 'released', 'requeued'] as const),
  ...(['timeout', 'stream_interrupted', 'outcome_unknown', 'service_unavailable'] as const),
];

/**
 * Inspects old holds: settles a job that has ended but is not settled, finishes one past its deadline, and ends one whose
 * worker died mid-answer without a successor, or that never reached its queue. A job whose vendor's task runs is requeued if
 * its queue has lost it. Every api process runs one, and they share the holds; every action is idempotent. Times are compared
 * by Redis's clock, which also set them: a host's clock may be minutes ahead.
 */
export class Sweeper {
  readonly #context: EndJobContext;
  readonly #log: Logger;
  readonly #onSwept: (action: SweepAction) => void;
  readonly #timer: NodeJS.Timeout;
  #round: Promise<void> | undefined;

  /** @param onSwept called for each job that it acts on */
  constructor(context: EndJobContext, log: Logger, onSwept: (action: SweepAction) => void = () => undefined) {
    this.#context = context;
    this.#log = log;
    this.#onSwept = onSwept;
    this.#timer = setInterval(() => {
      this.#round ??= this.sweep()
        .catch((error) => this.#log.warn({ err: error }, 'sweeping failed'))
        .finally(() => {
          this.#round = undefined;
        });
    }, intervalMs);
    this.#timer.unref();
  }

  /** One round over all accounts' holds. */
  async sweep(): Promise<void> {
    const endAt = performance.now() + roundMs;
    await Promise.all(
      accountKeys.allHolds().map(async (key) => {
        while ((await this.#sweepSome(key)) === batch && performance.now() < endAt);
      }),
    );
  }

  /** Inspects due holds of one tag; returns their number. */
  async #sweepSome(key: string): Promise<number> {
    const [now, ...members] = await dueHolds(this.#context.redis, [key], [batch, sweepAfterMs]);
    const inspections = await Promise.allSettled(members.map((member) => this.#inspect(key, member, Number(now))));
    const failed = inspections.find((inspection) => inspection.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    return members.length;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #inspect(holdsKey: string, member: string, now: number): Promise<void> {
    const held = readHoldMember(member);
    if (held === undefined) return;
    const { jobId } = held;
    // Of most jobs that run for long this tells enough, and many of them are asked about in one call.
    const progress = await readJobProgress(this.#context.redis, { jobId });
    const ownedUntil = progress?.ownedUntil ?? 0;
    if (progress !== undefined && ownedUntil > now && progress.deadlineAt > now) return;
    const state = await readReadableState(this.#context.redis, jobId);
    if (state === 'other_version') return;
    if (state === undefined) {
      // Nothing records how it ended (Redis lost its state), so only the hold is left to release. If the database knows the
      // job, the ledger ends it there.
      await settleNow(this.#context.redis, {
        ...held,
        retentionMs: 0,
        idempotency: '',
        outcome: 'failed',
        errorCode: undefined,
        began: true,
        record: '',
        cost: undefined,
        tokens: undefined,
      });
      this.#log.warn({ job: jobId }, 'job had a hold but no state');
      this.#onSwept('released');
      return;
    }
    const settlement = settlementOf(state);
    if (settlement !== undefined) {
      const ownMs = settlement.cost === 'held' ? countedByWorkersMs : settledByWorkerMs;
      const dueAt = (state.endedAt ?? 0) + (settlement.began ? ownMs : 0);
      if (now < dueAt) await this.#context.redis.zadd(holdsKey, 'XX', dueAt, member);
      else {
        await settleNow(this.#context.redis, settlement);
        this.#onSwept('settled');
      }
      return;
    }
    const leaseUntil = Math.max(state.leaseUntil, ownedUntil);
    // Nobody else ends one that still waits, if its caller has left.
    const isTooLate =
      state.attempt === 0 && state.startBy !== undefined && now >= state.startBy && now < state.deadlineAt;
    const error = isTooLate ? startedTooLate() : await this.#reasonToEnd({ ...state, leaseUntil }, now);
    if (error === undefined) return;
    const guard = isTooLate ? 'uncalled' : error.code === 'timeout' ? 'overdue' : 'abandoned';
    const { verdict } = await endJob(this.#context, state, error, guard);
    if (verdict !== 'finished') return;
    // A deadline passes in the best of times; of the others a process has died, or Redis has lost what it had.
    if (error.code !== 'timeout') this.#log.warn({ job: jobId, code: error.code }, 'job was lost; it is ended');
    this.#onSwept(error.code);
  }

  /** Why the sweeper must end an unfinished job; undefined while a worker runs it, or will. */
  async #reasonToEnd(state: JobState, now: number): Promise<ApiError | undefined> {
    if (now >= state.deadlineAt) return overdue();
    if (state.leaseUntil > now) return undefined;
    const isAbandoned = await this.#isAbandoned(state, now);
    // Not in its queue: the process that should have enqueued it died first, or the queue dropped it.
    if (!isAbandoned && (await this.#context.queue(state).has(state.id))) return undefined;
    if (state.hasDelta) return interrupted();
    if (state.task !== undefined) {
      // The vendor's task continues. Polling it needs no more than the state contains, and enqueuing twice has no further effect.
      await this.#context.queue(state).enqueue(queuedJobOf(state));
      this.#onSwept('requeued');
      return undefined;
    }
    if (state.attempt > 0) return new ApiError('outcome_unknown', 'The process that ran this request was lost.');
    return lostBeforeRun();
  }

  /** Whether a begun job has lost its worker for good. One without output may still be run while it waits in its queue. */
  async #isAbandoned(state: JobState, now: number): Promise<boolean> {
    const { id, hasDelta, leaseUntil } = state;
    if (leaseUntil === 0 || now <= leaseUntil + abandonedMs) return false;
    return hasDelta || (await this.#context.queue(state).reader.position(id)) === undefined;
  }
}

/** The holds of a job of another version are left to a process that can read its state. */
async function readReadableState(redis: RedisClient, jobId: string): Promise<JobState | 'other_version' | undefined> {
  try {
    return await readJobState(redis, jobId);
  } catch (error) {
    if (isOtherVersion(error)) return 'other_version';
    throw error;
  }
}

/** A job's identity and request without its state: a poll that finds the task completed needs its request and tags. */
function queuedJobOf(state: JobState): QueuedJob {
  const {
    readers: _readers,
    attempt: _attempt,
    beganAt: _beganAt,
    endedAt: _endedAt,
    outcome: _outcome,
    ...rest
  } = state;
  const {
    errorCode: _code,
    errorDetails: _details,
    usage: _usage,
    cost: _cost,
    saved: _saved,
    seq: _seq,
    hasDelta: _hasDelta,
    ...more
  } = rest;
  const { leaseUntil: _lease, progress: _progress, task: _task, isDeleted: _isDeleted, ...job } = more;
  return job;
}

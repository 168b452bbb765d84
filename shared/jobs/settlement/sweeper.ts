import type { Capability } from '../../capabilities/capability.ts';
import { ApiError } from '../../errors.ts';
import type { QueuedJob } from '../../queue/queue.ts';
import { accountKeys } from '../../redis/keys.ts';
import { loadScript } from '../../redis/script.ts';
import type { Logger } from '../../runtime/log.ts';
import { type JobState, readJobState } from '../job-state.ts';
import { type EndJobContext, endJob } from './end-job.ts';
import { countedByWorkersMs, settledByWorkerMs, settlementOf, settleNow } from './settle.ts';

/** How often the sweeper looks. */
const intervalMs = 2000;
/** When a hold is looked at for the first time, and again, after its job was found alive. */
export const sweepAfterMs = 10_000;
/** A begun job whose lease has been dead for so long has no worker left that would take it up. */
const abandonedMs = 20_000;
/** Holds looked at together of a tag. */
const batch = 100;
/** How long a round goes on while more holds of a tag are due than that. */
const roundMs = 10_000;

const dueHolds = loadScript<[now: string, ...members: string[]]>(new URL('./due-holds.lua', import.meta.url));

/**
 * Looks at old holds: a job that has ended but is not settled is settled, one past its deadline is finished, one whose
 * worker died in the middle of an answer and that no other took up is ended, and so is one that never came into its queue.
 * One whose vendor's task runs is put back into its queue if it is lost there.
 * Every api process runs one, and they share the holds among them; all it does may be done twice. It goes by Redis's clock,
 * as the times do that it looks at: a host's own may be minutes ahead.
 */
export class Sweeper {
  readonly #context: EndJobContext;
  readonly #log: Logger;
  readonly #timer: NodeJS.Timeout;
  #round: Promise<void> | undefined;

  constructor(context: EndJobContext, log: Logger) {
    this.#context = context;
    this.#log = log;
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

  /** Looks at holds of one tag that are due; returns how many they were. */
  async #sweepSome(key: string): Promise<number> {
    const [now, ...members] = await dueHolds(this.#context.redis, [key], [batch, sweepAfterMs]);
    const looks = await Promise.allSettled(members.map((member) => this.#look(key, member, Number(now))));
    const failed = looks.find((look) => look.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    return members.length;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #look(holdsKey: string, member: string, now: number): Promise<void> {
    const [jobId = '', account = '', apiKeyId = '', capability] = member.split(' ');
    const state = await readJobState(this.#context.redis, jobId);
    if (state === undefined) {
      // Nothing is left to tell how it ended (Redis lost it): what remains is to take the hold off. Where the database knows
      // the job, the ledger ends it there.
      await settleNow(this.#context.redis, {
        jobId,
        account,
        apiKeyId,
        capability: capability as Capability,
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
      return;
    }
    const settlement = settlementOf(state);
    if (settlement !== undefined) {
      const ownMs = settlement.cost === 'held' ? countedByWorkersMs : settledByWorkerMs;
      const dueAt = (state.endedAt ?? 0) + (settlement.began ? ownMs : 0);
      if (now < dueAt) await this.#context.redis.zadd(holdsKey, 'XX', dueAt, member);
      else await settleNow(this.#context.redis, settlement);
      return;
    }
    const error = await this.#reasonToEnd(state, now);
    if (error === undefined) return;
    await endJob(this.#context, state, error, error.code === 'timeout' ? 'overdue' : 'abandoned');
  }

  /** Why a job that has not ended must be ended from here; undefined while somebody runs it, or will. */
  async #reasonToEnd(state: JobState, now: number): Promise<ApiError | undefined> {
    if (now >= state.deadlineAt) return new ApiError('timeout', 'The request was not answered within its deadline.');
    if (state.leaseUntil > now) return undefined;
    const isAbandoned = await this.#isAbandoned(state, now);
    // Not in its queue: the process that was to put it there died first, or the queue gave it up.
    if (!isAbandoned && (await this.#context.queue(state.capability).has(state.id))) return undefined;
    if (state.hasDelta) {
      return new ApiError('stream_interrupted', 'The answer broke off: the process that produced it was lost.');
    }
    if (state.task !== undefined) {
      // The vendor goes on with its task. Polling it takes no more than the state knows, and what is queued twice is
      // queued once.
      await this.#context.queue(state.capability).enqueue(queuedJobOf(state));
      return undefined;
    }
    if (state.attempt > 0) return new ApiError('outcome_unknown', 'The process that ran this request was lost.');
    return new ApiError('service_unavailable', 'The request was lost before it ran. Retry it.');
  }

  /** Whether a begun job has lost its worker for good. One without output may yet be run, while it waits in its queue. */
  async #isAbandoned({ id, capability, hasDelta, leaseUntil }: JobState, now: number): Promise<boolean> {
    if (leaseUntil === 0 || now <= leaseUntil + abandonedMs) return false;
    return hasDelta || (await this.#context.queue(capability).position(id)) === undefined;
  }
}

/** What a job is and asks for, without how it stands: a poll that finds the task done needs its request, and its tags. */
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
    seq: _seq,
    hasDelta: _hasDelta,
    ...more
  } = rest;
  const { leaseUntil: _lease, progress: _progress, task: _task, isDeleted: _isDeleted, ...job } = more;
  return job;
}

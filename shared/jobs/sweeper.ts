import type { Capability } from '../capabilities/capability.ts';
import { ApiError } from '../errors.ts';
import { accountKeys } from '../keys.ts';
import type { Logger } from '../log.ts';
import { type EndJobContext, endJob } from './end-job.ts';
import { type JobIdentity, type JobState, readJobState } from './job-state.ts';
import { settledByWorkerMs, settlementOf, settleNow } from './settle.ts';

/** How often the sweeper looks. */
const intervalMs = 2000;
/** When a hold is looked at for the first time, and again, after its job was found alive. */
export const sweepAfterMs = 10_000;
/** A begun job whose lease has been dead for so long has no worker left that would take it up. */
const abandonedMs = 20_000;
/** Holds looked at per tag and round: bounds one round's work. */
const batch = 100;

/**
 * Looks at old holds: a job that has ended but is not settled is settled, one past its deadline is finished, one whose
 * worker died in the middle of an answer and that no other took up is ended, and so is one that never came into its queue.
 * One whose vendor's task runs is put back into its queue if it is lost there.
 * Every api process runs one; all it does may be done twice.
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
    const { redis } = this.#context;
    const now = Date.now();
    await Promise.all(
      accountKeys.allHolds().map(async (key) => {
        const members = await redis.zrangebyscore(key, '-inf', now, 'LIMIT', 0, batch);
        await Promise.all(members.map((member) => this.#look(key, member, now)));
      }),
    );
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
      this.#log.warn({ job: jobId }, 'a job was held but had no state');
      return;
    }
    const settlement = settlementOf(state);
    if (settlement !== undefined) {
      const dueAt = (state.endedAt ?? 0) + (settlement.began ? settledByWorkerMs : 0);
      if (now < dueAt) await this.#context.redis.zadd(holdsKey, 'XX', dueAt, member);
      else await settleNow(this.#context.redis, settlement);
      return;
    }
    const error = await this.#reasonToEnd(state, now);
    if (error === undefined) {
      await this.#context.redis.zadd(holdsKey, 'XX', now + sweepAfterMs, member);
    } else {
      await endJob(this.#context, state, error, error.code === 'timeout' ? undefined : 'abandoned');
    }
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
      await this.#context.queue(state.capability).enqueue(identityOf(state));
      return undefined;
    }
    if (state.attempt > 0) return new ApiError('outcome_unknown', 'The process that ran this request was lost.');
    return new ApiError('service_unavailable', 'The request was lost before it could be run. Send it again.');
  }

  /** Whether a begun job has lost its worker for good. One without output may yet be run, while it waits in its queue. */
  async #isAbandoned({ id, capability, hasDelta, leaseUntil }: JobState, now: number): Promise<boolean> {
    if (leaseUntil === 0 || now <= leaseUntil + abandonedMs) return false;
    return hasDelta || (await this.#context.queue(capability).position(id)) === undefined;
  }
}

/** What a job is, without how it stands. */
function identityOf(state: JobState): JobIdentity {
  const { id, account, apiKeyId, capability, endpoint, model, stream, resource } = state;
  const { createdAt, deadlineAt, retentionMs, idempotency, viewOptions } = state;
  const fixed = { id, account, apiKeyId, capability, endpoint, model, stream, createdAt, deadlineAt, retentionMs };
  return { ...fixed, idempotency, viewOptions, ...(resource && { resource }) };
}

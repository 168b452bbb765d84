import { type Capability, isCapability } from '../../capabilities/capability.ts';
import { type ErrorCode, errorTable } from '../../errors.ts';
import { countAllTokens } from '../../money/token-counts.ts';
import { accountKeys, jobKeys } from '../../redis/keys.ts';
import type { RedisClient } from '../../redis/redis.ts';
import { isAheadScript, loadScript, untilAccepted } from '../../redis/script.ts';
import { chunksOf, groupBy } from '../../runtime/group-by.ts';
import type { Logger } from '../../runtime/log.ts';
import { leaveUnread } from '../../runtime/wire-version.ts';
import { withTimeout } from '../../runtime/with-timeout.ts';
import { groupByTag } from '../group-by-tag.ts';
import type { JobState, Outcome } from '../job-state.ts';
import { recordOfState } from './outbox.ts';

/** Maximum number of jobs settled per call: a script blocks Redis while it runs. */
const maxJobs = 500;
/** Lifetime of a settled plain job's state, so that a resent `add` or a late worker still finds that the job has ended. */
const settledMs = 120_000;
/** How long the last settlements of a process may take. */
const closeMs = 4000;

const script = loadScript<number[]>(new URL('./settle.lua', import.meta.url), isAheadScript);
const freeSlotScript = loadScript<number>(new URL('./free-slot.lua', import.meta.url));
const expireScript = loadScript<number>(new URL('./expire-states.lua', import.meta.url));

/**
 * How long (ms) only the worker may settle an ended job. A begun job is settled by the worker that runs it, whichever process
 * ended it, because only the worker knows its usage, which may have to be counted. The canceller frees only its slot, and the
 * sweeper skips it for this time, after which the worker is presumed dead. Usually it takes a few ms; a worker's first count,
 * which loads the tokenizer, takes a good part of a second, and seconds on busy processors.
 */
export const settledByWorkerMs = 10_000;
/**
 * The same while the usage is still to be counted: another worker claims the job from the queue 10 to 14 s after the first dies
 * or hangs, and settles it by its output. The sweeper settles it only if there is no other worker.
 */
export const countedByWorkersMs = 60_000;

/** Data of an ended job for its settlement. */
export interface Settlement {
  readonly jobId: string;
  readonly account: string;
  readonly apiKeyId: string;
  readonly capability: Capability;
  readonly retentionMs: number;
  /** Hash of the bound idempotency key, or ''. */
  readonly idempotency: string;
  /** As of `JobIdentity`. */
  readonly retryName?: string | undefined;
  readonly outcome: Outcome;
  readonly errorCode: ErrorCode | undefined;
  /** Whether a worker had begun the job. */
  readonly began: boolean;
  /** The outbox record (see `recordText`); '' if nothing is known of the job, or nothing is to be kept. */
  readonly record: string;
  /**
   * Cost in nano-dollars; at most the hold is charged. `held`: the usage could not be counted, so the hold, which is the
   * maximum possible cost, is charged. Undefined: nothing is charged.
   */
  readonly cost: number | 'held' | undefined;
  /** Tokens used, for the token limits; undefined if unknown. */
  readonly tokens: number | undefined;
}

/** Data for freeing a caller's slot. */
export type EndedSlot = Omit<Settlement, 'record' | 'retentionMs' | 'capability' | 'cost' | 'tokens' | 'retryName'>;

/** Data for expiring a settled job's state. */
export type ExpiringState = Pick<Settlement, 'jobId' | 'retentionMs'>;

/** A job's settlement from its state; undefined if it has not ended. */
export function settlementOf(state: Parameters<typeof recordOfState>[0], vendor = ''): Settlement | undefined {
  const { outcome } = state;
  if (outcome === undefined) return undefined;
  const { usage } = state;
  return {
    ...{ ...state, jobId: state.id, outcome, began: state.attempt > 0, record: recordOfState(state, vendor) },
    cost: costOfEnded(state) ?? boundOf(state),
    tokens: usage === undefined ? undefined : countAllTokens(JSON.parse(usage)),
  };
}

/** Cost of an ended job in nano-dollars; undefined if unknown. A job that never reached a vendor costs nothing. */
export function costOfEnded({ cost, attempt }: Pick<JobState, 'cost' | 'attempt'>): number | undefined {
  return cost ?? (attempt > 0 ? undefined : 0);
}

/** The charge for uncounted usage: if the answer may have been read, the whole hold. */
export function boundOf({ outcome, hasDelta }: Pick<JobState, 'outcome' | 'hasDelta'>): 'held' | undefined {
  return outcome === 'completed' || hasDelta ? 'held' : undefined;
}

/** A job's member in the set of holds. A later version has its number as a fifth word. */
export function holdMember(job: Pick<Settlement, 'jobId' | 'account' | 'apiKeyId' | 'capability'>): string {
  return `${job.jobId} ${job.account} ${job.apiKeyId} ${job.capability}`;
}

/** Parses a hold's member; undefined, and counted, if this build does not read its version. */
export function readHoldMember(
  member: string,
): Pick<Settlement, 'jobId' | 'account' | 'apiKeyId' | 'capability'> | undefined {
  const [jobId = '', account = '', apiKeyId = '', capability = '', ...more] = member.split(' ');
  if (more.length === 0 && isCapability(capability)) return { jobId, account, apiKeyId, capability };
  leaveUnread('hold');
  return undefined;
}

/** How long (ms) a retry finds a job that has completed: less than its undelivered answer stays in Redis. */
export const completedRetryMs = 30_000;

/** Names of cached answers begin with it, in the place of the hash of an idempotency key. */
export const cachePrefix = 'cache-';

/** Names of requests that share their job while it runs begin with it, in the same place; admit.lua knows it, too. */
export const sharedPrefix = 'shared-';

/**
 * Whether the idempotency key is freed: if the job ended before the vendor was called, and for 429 and 5xx outcomes, which are
 * not replayed, so that the caller's retry is a new try. The name of a cached answer is freed unless it completed, and
 * that of a shared job always.
 */
export function freesIdempotencyKey(job: Pick<Settlement, 'idempotency' | 'outcome' | 'errorCode' | 'began'>): boolean {
  if (job.idempotency === '') return false;
  if (job.idempotency.startsWith(sharedPrefix)) return true;
  if (job.outcome === 'completed') return false;
  if (!job.began || job.idempotency.startsWith(cachePrefix)) return true;
  const status = job.errorCode === undefined ? 500 : errorTable[job.errorCode].status;
  return status === 429 || status >= 500;
}

/**
 * Settles ended jobs: releases their holds and adds their records to the outbox. Idempotent: whichever process finished a job
 * settles it, and the sweeper does if that process died in between. Jobs of one account share a call. `expireStates` follows
 * it.
 *
 * A job without a hold was settled before, unless its state says otherwise: then Redis has lost the hold (a failover), and the
 * record is still sent. The job is charged only if its record is new to the database.
 */
export async function settle(redis: RedisClient, jobs: readonly Settlement[]): Promise<void> {
  const byTag = groupBy(jobs, (job) => accountKeys.tag(job.account));
  const groups = [...byTag.values()].flatMap((group) => chunksOf(group, maxJobs));
  await Promise.all(groups.map((group) => settleTag(redis, group)));
}

/**
 * Marks job states as settled, and lets those of plain jobs expire. Must follow the settlement: while the hold exists, the
 * sweeper must be able to read how the job ended. States of kept answers expire by the time set at their end, which the ledger
 * shortens.
 */
export async function expireStates(redis: RedisClient, jobs: readonly ExpiringState[]): Promise<void> {
  await Promise.all(
    groupByTag(redis, jobs, maxJobs).map((group) => {
      const keys = group.map((job) => jobKeys.state(job.jobId));
      const lifetimes = group.map((job) => (job.retentionMs === 0 ? settledMs : ''));
      return untilAccepted(() => expireScript(redis, keys, lifetimes));
    }),
  );
}

/** Settles one job from outside its worker, and lets its state expire. */
export async function settleNow(redis: RedisClient, job: Settlement): Promise<void> {
  await settle(redis, [job]);
  await expireStates(redis, [job]);
}

/**
 * Frees what a caller notices of an ended job that its worker settles later: its slot under the limit of its API key, and its
 * idempotency key. The count before the settlement may take seconds, and a client that cancels a job at the limit sends the
 * next one at once. The hold stays, so the sweeper still inspects it.
 */
export async function freeSlot(redis: RedisClient, job: EndedSlot): Promise<void> {
  const { running, binding } = slotKeys(job);
  const args = [job.jobId, freesIdempotencyKey(job) ? '1' : '0'];
  await untilAccepted(() => freeSlotScript(redis, [running, binding], args));
}

/** Keys of a job's slot and idempotency binding. Without a binding, the slot's key twice, as the script requires a key. */
function slotKeys({ account, apiKeyId, idempotency }: Pick<Settlement, 'account' | 'apiKeyId' | 'idempotency'>): {
  readonly running: string;
  readonly binding: string;
} {
  const running = accountKeys.running(account, apiKeyId);
  return { running, binding: idempotency ? accountKeys.idempotency(account, idempotency) : running };
}

async function settleTag(redis: RedisClient, jobs: readonly Settlement[]): Promise<void> {
  const missing = await callScript(redis, jobs, false);
  // Jobs without a record leave nothing to keep.
  const unheld = missing.flatMap((number) => jobs[number - 1] ?? []).filter(({ record }) => record !== '');
  if (unheld.length === 0) return;
  const isUnsettled = await Promise.all(unheld.map(({ jobId }) => hasUnsettledState(redis, jobId)));
  const lost = unheld.filter((_, index) => isUnsettled[index]);
  if (lost.length > 0) await callScript(redis, lost, true);
}

async function callScript(redis: RedisClient, jobs: readonly Settlement[], isUnsettled: boolean): Promise<number[]> {
  const { account } = jobs[0] as Settlement;
  const args: (string | number)[] = [accountKeys.prefix(account), isUnsettled ? '1' : ''];
  for (const job of jobs) {
    const freed = freesIdempotencyKey(job) ? job.idempotency : '';
    args.push(holdMember(job), freed, job.record, job.cost ?? '', job.tokens ?? '', retryText(job));
  }
  return await untilAccepted(() => script(redis, [accountKeys.holds(account), accountKeys.outbox(account)], args));
}

/** Until when a retry finds the job; '' if none does. The retry of a failed one is a new request. */
function retryText({ retryName, outcome }: Settlement): string {
  if (retryName === undefined) return '';
  return `${retryName} ${outcome === 'completed' ? completedRetryMs : 0}`;
}

/** Whether the state of an ended job marks it as unsettled; false if the state is gone. */
async function hasUnsettledState(redis: RedisClient, jobId: string): Promise<boolean> {
  const [terminal, settled] = await redis.hmget(jobKeys.state(jobId), 'terminal', 'settled');
  return Boolean(terminal) && !settled;
}

/** Batch window (ms) for settling ended jobs: one call settles many. At most half of `settlementMs`, for which admission waits. */
export const settleMs = 15;
/** How long (ms) after its end a job may take to be settled where nothing is amiss. */
export const settlementMs = 40;
/** Batch window for the expiry of their states, which is only cleanup. */
const expireMs = 1000;

/**
 * Settles the jobs that this process ended, many in one call. No caller waits for it: the sweeper settles what is lost with
 * the process.
 */
export class Settler {
  readonly #redis: RedisClient;
  readonly #log: Logger;
  #ended: Settlement[] = [];
  #settled: ExpiringState[] = [];
  #settleTimer: NodeJS.Timeout | undefined;
  #expireTimer: NodeJS.Timeout | undefined;
  #settling: Promise<void> = Promise.resolve();

  constructor(redis: RedisClient, log: Logger) {
    this.#redis = redis;
    this.#log = log;
  }

  add(job: Settlement): void {
    this.#ended.push(job);
    this.#settleTimer ??= setTimeout(() => this.#settle(), settleMs);
  }

  /** Settles the remaining jobs, as far as Redis is there: other processes settle those that are left. */
  async close(): Promise<void> {
    this.#settle();
    const settled = this.#settling.then(() => this.#expire());
    await withTimeout(settled, closeMs);
  }

  #settle(): void {
    clearTimeout(this.#settleTimer);
    this.#settleTimer = undefined;
    const jobs = this.#ended;
    this.#ended = [];
    if (jobs.length === 0) return;
    const settled = settle(this.#redis, jobs).then(
      () => {
        // Only these two fields: hundreds of entries wait here, and records are long.
        for (const { jobId, retentionMs } of jobs) this.#settled.push({ jobId, retentionMs });
        this.#expireTimer ??= setTimeout(() => void this.#expire(), expireMs);
      },
      (error) => this.#log.warn({ err: error }, 'settling a job failed; the sweeper retries it'),
    );
    this.#settling = Promise.all([this.#settling, settled]).then(() => undefined);
  }

  async #expire(): Promise<void> {
    clearTimeout(this.#expireTimer);
    this.#expireTimer = undefined;
    const jobs = this.#settled;
    this.#settled = [];
    await expireStates(this.#redis, jobs).catch((error) => this.#log.warn({ err: error }, 'expiring states failed'));
  }
}

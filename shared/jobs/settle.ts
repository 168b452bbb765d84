import { type ErrorCode, errorTable } from '../errors.ts';
import { groupBy } from '../group-by.ts';
import { accountKeys, jobKeys } from '../keys.ts';
import type { RedisClient } from '../redis.ts';
import type { JobState, Outcome } from './job-state.ts';
import { recordOfState } from './outbox.ts';
import { loadScript } from './script.ts';

/** How long the state of a settled plain job stays, so that a resent `add` or a late worker finds the end written. */
const settledMs = 120_000;

const script = loadScript<number>('settle', new URL('./settle.lua', import.meta.url));
const expireScript = loadScript<number>('expireStates', new URL('./expire-states.lua', import.meta.url));

/** What settlement needs to know of an ended job. */
export interface Settlement {
  readonly jobId: string;
  readonly account: string;
  readonly apiKeyId: string;
  readonly retentionMs: number;
  /** Hash of the idempotency key it is bound to, or ''. */
  readonly idempotency: string;
  readonly outcome: Outcome;
  readonly errorCode: ErrorCode | undefined;
  /** Whether a worker had begun the job. */
  readonly began: boolean;
  /** What goes into the outbox (see `recordText`); '' where nothing is known of the job, or nothing is to be kept. */
  readonly record: string;
}

/** The settlement of a job by its state; undefined while it has not ended. */
export function settlementOf(state: JobState, vendor = ''): Settlement | undefined {
  const { outcome } = state;
  if (outcome === undefined) return undefined;
  return { ...state, jobId: state.id, outcome, began: state.attempt > 0, record: recordOfState(state, vendor) };
}

/** The member of the holds that stands for a job. */
export function holdMember(job: { jobId: string; account: string; apiKeyId: string }): string {
  return `${job.jobId} ${job.account} ${job.apiKeyId}`;
}

/**
 * An idempotency key is freed when the job ended before the vendor was called, and for 429 and 5xx outcomes, which are
 * not replayed: the caller's retry is a new try.
 */
export function freesIdempotencyKey(job: Pick<Settlement, 'idempotency' | 'outcome' | 'errorCode' | 'began'>): boolean {
  if (job.idempotency === '' || job.outcome === 'completed') return false;
  if (!job.began) return true;
  const status = job.errorCode === undefined ? 500 : errorTable[job.errorCode].status;
  return status === 429 || status >= 500;
}

/**
 * Settles ended jobs: takes their holds off and puts their records into the outbox. Doing it twice changes nothing, so
 * whoever finished a job settles it, and the sweeper does where that one died in between. Jobs of one account go in one
 * call. `expireStates` comes after it.
 */
export async function settle(redis: RedisClient, jobs: readonly Settlement[]): Promise<void> {
  const byTag = groupBy(jobs, (job) => accountKeys.tag(job.account));
  await Promise.all([...byTag.values()].map((group) => settleTag(redis, group)));
}

/**
 * Lets the states of settled plain jobs expire. Only then: as long as the hold stands, the sweeper must be able to read how
 * the job ended. Those of kept answers have their time from their end on, and the ledger shortens it.
 */
export async function expireStates(redis: RedisClient, jobs: readonly Settlement[]): Promise<void> {
  const plain = jobs.filter((job) => job.retentionMs === 0);
  const byTag = groupBy(plain, (job) => jobKeys.tag(job.jobId));
  await Promise.all(
    [...byTag.values()].map((group) => {
      const keys = group.map((job) => jobKeys.state(job.jobId));
      return expireScript(
        redis,
        keys,
        group.map(() => settledMs),
      );
    }),
  );
}

/** Settles one job, from outside its worker, and lets its state expire. */
export async function settleNow(redis: RedisClient, job: Settlement): Promise<void> {
  await settle(redis, [job]);
  await expireStates(redis, [job]);
}

async function settleTag(redis: RedisClient, jobs: readonly Settlement[]): Promise<void> {
  const first = jobs[0] as Settlement;
  const keys = [accountKeys.holds(first.account), accountKeys.outbox(first.account)];
  const args: string[] = [];
  for (const job of jobs) {
    const running = accountKeys.running(job.account, job.apiKeyId);
    keys.push(running, job.idempotency ? accountKeys.idempotency(job.account, job.idempotency) : running);
    args.push(holdMember(job), freesIdempotencyKey(job) ? '1' : '0', job.record);
  }
  await script(redis, keys, args);
}

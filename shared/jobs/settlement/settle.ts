import type { Capability } from '../../capabilities/capability.ts';
import { type ErrorCode, errorTable } from '../../errors.ts';
import { countAllTokens } from '../../money/token-counts.ts';
import { accountKeys, jobKeys } from '../../redis/keys.ts';
import type { RedisClient } from '../../redis/redis.ts';
import { untilAccepted } from '../../redis/redis-refusal.ts';
import { loadScript } from '../../redis/script.ts';
import { groupBy } from '../../runtime/group-by.ts';
import type { JobState, Outcome } from '../job-state.ts';
import { recordOfState } from './outbox.ts';

/** Jobs that one call settles at most: a script stops Redis while it runs. */
const maxJobs = 500;
/** How long the state of a settled plain job stays, so that a resent `add` or a late worker finds the end written. */
const settledMs = 120_000;

const script = loadScript<number[]>(new URL('./settle.lua', import.meta.url));
const freeSlotScript = loadScript<number>(new URL('./free-slot.lua', import.meta.url));
const expireScript = loadScript<number>(new URL('./expire-states.lua', import.meta.url));

/**
 * How long (ms) an ended job is its worker's to settle. A begun job is settled by the worker that is at it, whoever ended
 * it: only that one can tell what it took, which may have to be counted. Who cancels it frees its place only, and the
 * sweeper leaves it alone for this time, after which the worker is taken for dead. Mostly it takes a few ms; a worker's
 * first count, which loads the tokenizer, takes a good part of a second, and seconds where the processors are busy.
 */
export const settledByWorkerMs = 10_000;
/**
 * The same where it is yet to be counted what the job took: another worker takes it from the queue 10 to 14 s after the first
 * has died, or hangs, and settles it by what it said. Only where there is none the sweeper does.
 */
export const countedByWorkersMs = 60_000;

/** What settlement needs to know of an ended job. */
export interface Settlement {
  readonly jobId: string;
  readonly account: string;
  readonly apiKeyId: string;
  readonly capability: Capability;
  readonly retentionMs: number;
  /** Hash of the idempotency key it is bound to, or ''. */
  readonly idempotency: string;
  readonly outcome: Outcome;
  readonly errorCode: ErrorCode | undefined;
  /** Whether a worker had begun the job. */
  readonly began: boolean;
  /** What goes into the outbox (see `recordText`); '' where nothing is known of the job, or nothing is to be kept. */
  readonly record: string;
  /**
   * What it has cost, in nano-dollars, of which no more is charged than was held. `held`: it took what nobody could count, and
   * is charged what was held for it, which is the most it can have cost. Undefined: nothing is charged.
   */
  readonly cost: number | 'held' | undefined;
  /** Tokens that it took, for the limits on them; undefined: none are known. */
  readonly tokens: number | undefined;
}

/** What a caller's place needs to be freed. */
export type EndedSlot = Omit<Settlement, 'record' | 'retentionMs' | 'capability' | 'cost' | 'tokens'>;

/** What the expiry of a settled job's state needs to know of it. */
export type ExpiringState = Pick<Settlement, 'jobId' | 'retentionMs'>;

/** The settlement of a job by its state; undefined while it has not ended. */
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

/** What an ended job has cost, in nano-dollars; undefined: nobody knows. What no vendor was asked for costs nothing. */
export function costOfEnded({ cost, attempt }: Pick<JobState, 'cost' | 'attempt'>): number | undefined {
  return cost ?? (attempt > 0 ? undefined : 0);
}

/** What is charged for what nobody has counted: of an answer that somebody may have read, all that was held for it. */
export function boundOf({ outcome, hasDelta }: Pick<JobState, 'outcome' | 'hasDelta'>): 'held' | undefined {
  return outcome === 'completed' || hasDelta ? 'held' : undefined;
}

/** The member of the holds that stands for a job. */
export function holdMember(job: Pick<Settlement, 'jobId' | 'account' | 'apiKeyId' | 'capability'>): string {
  return `${job.jobId} ${job.account} ${job.apiKeyId} ${job.capability}`;
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
 *
 * A job without a hold was settled before, unless its state says otherwise: then Redis has lost the hold (a failover), and
 * the job's record goes out all the same. The database decides whether it is news, and only then the job is charged.
 */
export async function settle(redis: RedisClient, jobs: readonly Settlement[]): Promise<void> {
  const byTag = groupBy(jobs, (job) => accountKeys.tag(job.account));
  const groups = [...byTag.values()].flatMap((group) => chunksOf(group, maxJobs));
  await Promise.all(groups.map((group) => settleTag(redis, group)));
}

function chunksOf<Item>(items: readonly Item[], size: number): Item[][] {
  const chunks: Item[][] = [];
  for (let start = 0; start < items.length; start += size) chunks.push(items.slice(start, start + size));
  return chunks;
}

/**
 * Marks states of settled jobs as such, and lets those of plain ones expire. Only then: as long as the hold stands, the
 * sweeper must be able to read how the job ended. Those of kept answers have their time from their end on, and the ledger
 * shortens it.
 */
export async function expireStates(redis: RedisClient, jobs: readonly ExpiringState[]): Promise<void> {
  const byTag = groupBy(jobs, (job) => jobKeys.tag(job.jobId));
  await Promise.all(
    [...byTag.values()].map((group) => {
      const keys = group.map((job) => jobKeys.state(job.jobId));
      return expireScript(
        redis,
        keys,
        group.map((job) => (job.retentionMs === 0 ? settledMs : '')),
      );
    }),
  );
}

/** Settles one job, from outside its worker, and lets its state expire. */
export async function settleNow(redis: RedisClient, job: Settlement): Promise<void> {
  await settle(redis, [job]);
  await expireStates(redis, [job]);
}

/**
 * Takes off what a caller notices of an ended job whose settlement is its worker's: its place under the limit of its API
 * key, and its idempotency key. The count that goes before the settlement may take seconds, and who cancels a job at the
 * limit sends the next one at once. The hold stays, and with it the sweeper's look.
 */
export async function freeSlot(redis: RedisClient, job: EndedSlot): Promise<void> {
  const { running, binding } = placeOf(job);
  const args = [job.jobId, freesIdempotencyKey(job) ? '1' : '0'];
  await untilAccepted(() => freeSlotScript(redis, [running, binding], args));
}

/** Where its place is, and its idempotency key: without one, the place again, for a script wants a key. */
function placeOf({ account, apiKeyId, idempotency }: Pick<Settlement, 'account' | 'apiKeyId' | 'idempotency'>): {
  readonly running: string;
  readonly binding: string;
} {
  const running = accountKeys.running(account, apiKeyId);
  return { running, binding: idempotency ? accountKeys.idempotency(account, idempotency) : running };
}

async function settleTag(redis: RedisClient, jobs: readonly Settlement[]): Promise<void> {
  const missing = await callScript(redis, jobs, false);
  // Nothing is to be kept of those without a record.
  const unheld = missing.flatMap((number) => jobs[number - 1] ?? []).filter(({ record }) => record !== '');
  if (unheld.length === 0) return;
  const isUnsettled = await Promise.all(unheld.map(({ jobId }) => saysUnsettled(redis, jobId)));
  const lost = unheld.filter((_, index) => isUnsettled[index]);
  if (lost.length > 0) await callScript(redis, lost, true);
}

async function callScript(redis: RedisClient, jobs: readonly Settlement[], isUnsettled: boolean): Promise<number[]> {
  const { account } = jobs[0] as Settlement;
  const args: (string | number)[] = [accountKeys.prefix(account), isUnsettled ? '1' : ''];
  for (const job of jobs) {
    const freed = freesIdempotencyKey(job) ? job.idempotency : '';
    args.push(holdMember(job), freed, job.record, job.cost ?? '', job.tokens ?? '');
  }
  return await untilAccepted(() => script(redis, [accountKeys.holds(account), accountKeys.outbox(account)], args));
}

/** Whether the state of an ended job says that it was not settled; one that is gone says nothing. */
async function saysUnsettled(redis: RedisClient, jobId: string): Promise<boolean> {
  const [terminal, settled] = await redis.hmget(jobKeys.state(jobId), 'terminal', 'settled');
  return Boolean(terminal) && !settled;
}

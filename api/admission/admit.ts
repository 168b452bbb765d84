import { budgetPeriodAt, commonBudget, type QueueTerms } from '../../shared/accounts/account-money.ts';
import type { Capability } from '../../shared/capabilities/capability.ts';
import {
  type JobIdentity,
  newStateLifetime,
  type StoredRequest,
  shardOf,
  storedField,
} from '../../shared/jobs/job-state.ts';
import { completedRetryMs, sharedPrefix } from '../../shared/jobs/settlement/settle.ts';
import { sweepAfterMs } from '../../shared/jobs/settlement/sweeper.ts';
import type { Hold } from '../../shared/money/hold.ts';
import type { QueuedJob } from '../../shared/queue/queue.ts';
import { addJobScript } from '../../shared/queue/script-fragments.ts';
import { accountKeys, jobKeys, queueKeysPrefix } from '../../shared/redis/keys.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import { inBatches, isAheadScript, loadScript, readVerdict, refusalScript } from '../../shared/redis/script.ts';
import type { Caller } from '../auth/caller.ts';

/** Lifetime of an idempotency key's binding to its job. */
export const idempotencyMs = 24 * 3_600_000;

/** How long the binding of a shared job may outlive its deadline. */
const unboundMs = 60_000;

const script = loadScript<string[]>(
  new URL('./admit.lua', import.meta.url),
  refusalScript,
  addJobScript,
  isAheadScript,
  new URL('./rate-buckets.lua', import.meta.url),
);

/**
 * Why new work is refused: of any caller, or (`line_wait`) of one whose own jobs wait too long; of low priority: as too many such jobs
 * wait, of all accounts or (`flex_share`) of its own.
 */
export type Shedding = 'shed' | 'queue_full' | 'queue_wait' | 'line_wait' | 'flex_full' | 'flex_share';

/** The minimum to which an answer is lowered when funds are short: OpenAI accepts no lower limit. */
const minTokens = 16;

/**
 * Unfinished jobs of an account and capability up to which its next job has no priority while the queue flows. Such jobs
 * precede all others until the queue is next checked, which costs little if jobs are quick.
 */
const jobsWithoutPriority: Readonly<Record<Capability, number>> = {
  chat: 256,
  embedding: 256,
  image: 64,
  transcription: 64,
  speech: 64,
  video: 64,
};

/** The fill of a queue, and how much of it an account may use. */
interface QueueFill {
  readonly waiting: number;
  /** Jobs that workers have claimed. */
  readonly active: number;
  /** Unfinished jobs of the account that wait beside the queue. */
  readonly beside: number;
  /** How many of the waiting jobs may be the account's at most. */
  readonly maxOwn: number;
  /** Maximum of waiting jobs. */
  readonly limit: number;
  /** Of what others leave free, while they wait; an account alone leaves that share of the queue free. */
  readonly share: number;
}

const endless: QueueFill = { waiting: 0, active: 0, beside: 0, maxOwn: 0, limit: Number.MAX_SAFE_INTEGER, share: 1 };

export interface AdmitCall {
  readonly job: JobIdentity;
  readonly caller: Caller;
  /** Maximum of unfinished jobs of the API key. */
  readonly concurrency: number;
  /** Hash of the request's body; used only with an idempotency key. */
  readonly bodyHash: string;
  /** Lifetime of the binding of a cached answer's name, in ms; left out: that of an idempotency key. */
  readonly bindingMs?: number | undefined;
  /**
   * The job of a cached answer that is too old, or that waits with a lower priority, which it replaces once it is admitted: nothing
   * that is refused removes an answer.
   */
  readonly replaces?: string | undefined;
  /** Whether it is a retry of the client library: the job of an earlier try is reported, and nothing admitted. */
  readonly isRetry?: boolean | undefined;
  readonly shedding: Shedding | undefined;
  /** Whether jobs are claimed as soon as they are queued. */
  readonly flows: boolean;
  /** Current time of Redis's clock, which determines a budget's period. */
  readonly time: number;
  /** Time after which it must not be admitted, by Redis's clock: its caller has another response by then. */
  readonly notAfter: number;
  /** The fill of the queue; unbounded by default, and for jobs that wait beside it. */
  readonly fill?: QueueFill | undefined;
  /** The job's maximum cost; `unknown`: not estimated yet, `unpriced`: it has no price. */
  readonly hold: Hold | 'unknown' | 'unpriced';
  /** Expected tokens, for limits on tokens; actual usage replaces them at the settlement. */
  readonly tokens: number;
  /** Which of its key's limits for single models counts it, see `limitedModel`. */
  readonly limitedAs?: string | undefined;
  /** The process that waits for the answer, if the job's state is made with the admission (not on a Cluster). */
  readonly reader: string | undefined;
  /** A resource's request, for its state. */
  readonly stored?: StoredRequest | undefined;
  /** Another field of its state in the place of that. */
  readonly stateField?: readonly [name: string, value: string] | undefined;
  /** The queue's further data of the job, if it is queued in the same step; only with `reader`. */
  readonly queued?: Omit<QueuedJob, keyof JobIdentity> | undefined;
}

/** All verdicts of admit.lua. */
const verdicts = [
  ...(['admitted', 'replay', 'reused'] as const),
  ...(['unknown', 'changed', 'revoked', 'unloaded', 'unasked', 'suspended'] as const),
  ...(['shed', 'queue_full', 'queue_wait', 'line_wait', 'flex_full', 'flex_share'] as const),
  ...(['queue_share', 'concurrency', 'rate'] as const),
  ...(['unpriced', 'balance', 'budget', 'late'] as const),
];

/** The result of an admission. */
export interface AdmitReply {
  readonly verdict: (typeof verdicts)[number];
  /** The job that an idempotency key is bound to, or that an earlier try made; or the verdict's detail from admit.lua. */
  readonly detail: string;
  /** Unfinished jobs of the API key, including this one. */
  readonly running: number;
  /** Whether the queue gives it a priority; else it precedes all that have one. */
  readonly hasPriority: boolean;
  /** The terms of its account in queues, if it gets a priority; left out: they are to be read. */
  readonly queueTerms?: QueueTerms | undefined;
  /** Lowered maximum tokens of each choice's answer, else 0. */
  readonly lowered: number;
  /** The rest of the key's limits per minute: `requests reset-ms tokens reset-ms`, `-` for none; '' without any. */
  readonly left: string;
  /** Whether it is in its queue already. */
  readonly isQueued: boolean;
  /** Nano-dollars that it holds, and costs at most; left out: it needs no hold. */
  readonly maxCost?: number | undefined;
}

/**
 * Asks for admission; see admit.lua. An admitted job holds its slot, and its maximum cost, until it is settled. Simultaneous
 * calls of one key are batched.
 */
export const admit = inBatches(askForAll, areAlike);

function areAlike(one: AdmitCall, other: AdmitCall): boolean {
  return (
    one.job.apiKeyId === other.job.apiKeyId &&
    one.job.account === other.job.account &&
    one.job.capability === other.job.capability &&
    (one.reader === undefined || shardOf(one.job) === shardOf(other.job)) &&
    one.caller.revision === other.caller.revision &&
    one.shedding === other.shedding &&
    one.flows === other.flows &&
    (one.fill === undefined) === (other.fill === undefined) &&
    one.reader === other.reader
  );
}

/** Asks for jobs of one key, capability and, if they are queued in the same step, shard. */
async function askForAll(redis: RedisClient, calls: readonly AdmitCall[]): Promise<(AdmitReply | Error)[]> {
  const { job, caller, concurrency, shedding, flows, reader, time } = calls.at(-1) as AdmitCall;
  // The first one's knows of those that are asked for before: the script counts these.
  const { fill = endless } = calls[0] as AdmitCall;
  const { account, apiKeyId, capability } = job;
  const keys = [accountKeys.holds(account)];
  const args = [
    accountKeys.prefix(account),
    account,
    apiKeyId,
    capability,
    caller.revision,
    concurrency,
    sweepAfterMs,
    shedding ?? '',
    `${flows ? jobsWithoutPriority[capability] : 0} ${fill.waiting} ${fill.active} ${fill.limit} ${fill.share} ${fill.beside} ${fill.maxOwn}`,
    caller.budget ? budgetText(caller, caller.budget, time) : '',
    `${caller.rpm ?? 0} ${caller.tpm ?? 0}`,
    reader === undefined ? '' : queueKeysPrefix(capability, shardOf(job)),
    reader ?? '',
  ];
  for (const call of calls) {
    if (reader !== undefined) keys.push(jobKeys.state(call.job.id));
    pushJob(args, call);
  }
  return (await script(redis, keys, args)).map(readReply);
}

function budgetText({ budgetId }: Caller, { amount, period }: NonNullable<Caller['budget']>, now: number): string {
  const { name, from } = budgetPeriodAt(period, now);
  return `${amount} ${name} ${from} ${commonBudget({ budgetId, period }) ?? ''}`;
}

function pushJob(args: (string | number)[], call: AdmitCall): void {
  const { job, stored, stateField, queued, notAfter } = call;
  const [field, value] = stateField ?? storedField(stored);
  args.push(
    job.id,
    job.idempotency ? `${job.idempotency} ${call.bodyHash} ${bindingMs(call)} ${call.replaces ?? ''}` : '',
    holdText(call),
    limitsText(call),
    newStateLifetime(job),
    job.deadlineAt,
    call.reader === undefined ? '' : JSON.stringify(job),
    field,
    value,
    queued === undefined ? '' : JSON.stringify(queued).slice(1),
    notAfter,
    retryText(call),
  );
}

/** How long (ms) the job is bound. A shared one is until its end, so this only bounds what is left of a lost one. */
function bindingMs({ job, bindingMs: given }: AdmitCall): number {
  if (given !== undefined) return given;
  return job.idempotency.startsWith(sharedPrefix)
    ? Math.ceil(job.deadlineAt - job.createdAt) + unboundMs
    : idempotencyMs;
}

/** The name under which the job's retries find it, while it runs and for a while after; '' if none do. */
function retryText({ job: { retryName, createdAt, deadlineAt }, isRetry = false }: AdmitCall): string {
  if (retryName === undefined) return '';
  return `${retryName} ${Math.ceil(deadlineAt - createdAt) + completedRetryMs} ${isRetry ? 1 : 0}`;
}

function readReply(text: string): AdmitReply | Error {
  const [name, detail = '', running, terms = '0', lowered, left = '', isQueued, amount] = text.split('\t');
  if (name === 'error') return new Error(detail);
  const verdict = readVerdict(verdicts, name);
  if (verdict instanceof Error) return verdict;
  return {
    verdict,
    detail,
    running: Number(running),
    hasPriority: terms !== '0',
    queueTerms: terms === '0' ? undefined : readTerms(terms),
    lowered: Number(lowered),
    left,
    isQueued: isQueued === '1',
    ...(verdict === 'admitted' && amount !== '-' && { maxCost: Number(amount) }),
  };
}

function readTerms(text: string): QueueTerms | undefined {
  const [weight, byKey] = text.split(' ');
  return byKey === undefined ? undefined : { queueWeight: Number(weight), queueByKey: byKey === '1' };
}

function holdText({ hold }: AdmitCall): string {
  if (hold === 'unknown') return '?';
  if (hold === 'unpriced') return '';
  const { fixed, outputPrice, outputTokens, isGiven } = hold;
  const least = isGiven ? outputTokens : Math.min(minTokens, outputTokens);
  return `${fixed} ${outputPrice} ${outputTokens} ${least}`;
}

/** A job's share of limits per minute; '' if there is no limit. */
function limitsText({ caller, tokens, limitedAs }: AdmitCall): string {
  const { rpm, tpm, modelLimits } = caller;
  const own = limitedAs === undefined ? undefined : modelLimits?.[limitedAs];
  if (rpm === undefined && tpm === undefined && own === undefined) return '';
  const counted = tpm === undefined && own?.tpm === undefined ? 0 : tokens;
  const model = limitedAs === undefined ? '-' : encodeURIComponent(limitedAs);
  return `${own?.rpm ?? 0} ${own?.tpm ?? 0} ${counted} ${model}`;
}

/**
 * Parses the detail of `balance` and `budget`: the job's maximum cost, the available amount, and what unfinished requests hold if it
 * suffices once they have ended, else 0; in nano-dollars.
 */
export function readShortage(detail: string): { readonly cost: number; readonly left: number; readonly held: number } {
  const [cost = 0, left = 0, held = 0] = detail.split(' ').map(Number);
  return { cost, left, held };
}

/** Whether a job would be admitted once others, which may have ended already, are settled. */
export function mayAwaitSettlement({ verdict, detail }: AdmitReply): boolean {
  if (verdict === 'balance' || verdict === 'budget') return readShortage(detail).held > 0;
  return verdict === 'concurrency';
}

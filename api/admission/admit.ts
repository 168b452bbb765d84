import { budgetPeriodAt } from '../../shared/accounts/account-money.ts';
import type { Capability } from '../../shared/capabilities/capability.ts';
import { type JobIdentity, newStateLifetime, type StoredRequest, storedField } from '../../shared/jobs/job-state.ts';
import { sweepAfterMs } from '../../shared/jobs/settlement/sweeper.ts';
import type { Hold } from '../../shared/money/hold.ts';
import { addJobScript, type QueuedJob, queueKeysPrefix } from '../../shared/queue/queue.ts';
import { inBatches } from '../../shared/redis/in-batches.ts';
import { accountKeys, jobKeys } from '../../shared/redis/keys.ts';
import { readVerdict } from '../../shared/redis/read-verdict.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import { loadScript, refusalScript } from '../../shared/redis/script.ts';
import type { Caller } from '../auth/caller.ts';

/** How long an idempotency key stays bound to its job. */
export const idempotencyMs = 24 * 3_600_000;

const script = loadScript<string[]>(new URL('./admit.lua', import.meta.url), refusalScript, addJobScript);

/** Why new work is refused whoever asks. */
export type Shedding = 'shed' | 'queue_full';

/** The fewest tokens that an answer is lowered to by what is left to pay for it: OpenAI takes no lower limit. */
const minTokens = 16;

/**
 * Unfinished jobs of an account in a capability up to which its next one goes without a turn while the queue flows. What it
 * has beyond that within the moment in which nobody looks stands before everybody else's: little where jobs are quick.
 */
const jobsWithoutTurn: Readonly<Record<Capability, number>> = {
  chat: 256,
  embedding: 256,
  image: 64,
  transcription: 64,
  speech: 64,
  video: 64,
};

/** How full a queue is, and what of it an account may fill. */
interface QueueFill {
  readonly waiting: number;
  /** Jobs that workers have. */
  readonly active: number;
  /** Jobs that may wait. */
  readonly limit: number;
  /** Of what others leave, while they wait; alone an account leaves that share of the queue free. */
  readonly share: number;
}

const endless: QueueFill = { waiting: 0, active: 0, limit: Number.MAX_SAFE_INTEGER, share: 1 };

export interface AdmitCall {
  readonly job: JobIdentity;
  readonly caller: Caller;
  /** Unfinished jobs the API key may have. */
  readonly concurrency: number;
  /** Hash of the request's body; used only with an idempotency key. */
  readonly bodyHash: string;
  readonly shedding: Shedding | undefined;
  /** Whether jobs are taken from the queue as soon as they come. */
  readonly flows: boolean;
  /** The highest turn that workers have taken. */
  readonly virtualTime: number;
  /** What time it is by Redis's clock, which a budget's period goes by. */
  readonly time: number;
  /** When it must not be admitted any more, by Redis's clock: its caller is answered without it by then. */
  readonly notAfter: number;
  /** How full the queue is; left out: it has no end. */
  readonly fill?: QueueFill;
  /** What the job may cost; `unknown`: not asked for yet, `unpriced`: nobody knows. */
  readonly hold: Hold | 'unknown' | 'unpriced';
  /** Tokens it is expected to take, for limits on tokens; what it took replaces them at its settlement. */
  readonly tokens: number;
  /** The process that waits for the answer, when the job's state is to be made with the admission (not on a Cluster). */
  readonly reader: string | undefined;
  /** A resource's request, for its state. */
  readonly stored?: StoredRequest | undefined;
  /** What the queue gets beside the job itself, where it is to be queued in the same step; only with `reader`. */
  readonly queued?: Omit<QueuedJob, keyof JobIdentity> | undefined;
}

/** All that admit.lua may say of a job. */
const verdicts = [
  ...(['admitted', 'replay', 'reused'] as const),
  ...(['unknown', 'changed', 'revoked', 'unloaded', 'unasked', 'suspended'] as const),
  ...(['shed', 'queue_full', 'queue_share', 'concurrency', 'rate'] as const),
  ...(['unpriced', 'balance', 'budget', 'late'] as const),
];

/** What admission has come to. */
export interface AdmitReply {
  readonly verdict: (typeof verdicts)[number];
  /** The job that an idempotency key is bound to, or what else admit.lua tells of its verdict. */
  readonly detail: string;
  /** Unfinished jobs of the API key, this one counted. */
  readonly running: number;
  /** When it is taken from the queue, in the virtual time of `FairnessClock`; 0: before all that have a turn. */
  readonly turn: number;
  /** Tokens that the answer of each choice may have, where that was lowered; else 0. */
  readonly lowered: number;
  /** What is left of the key's limits for a minute: `requests reset-ms tokens reset-ms`, `-` for none; '' without any. */
  readonly left: string;
  /** It is in its queue already. */
  readonly isQueued: boolean;
}

/**
 * Asks for admission; see admit.lua. An admitted job holds its place, and what it may cost, until it is settled. Those that
 * one key asks for in the same moment are asked for in one call.
 */
export const admit = inBatches(askForAll, areAlike);

function areAlike(one: AdmitCall, other: AdmitCall): boolean {
  return (
    one.job.apiKeyId === other.job.apiKeyId &&
    one.job.account === other.job.account &&
    one.job.capability === other.job.capability &&
    one.caller.revision === other.caller.revision &&
    one.shedding === other.shedding &&
    one.flows === other.flows &&
    one.reader === other.reader
  );
}

/** Asks for jobs of one key and capability. */
async function askForAll(redis: RedisClient, calls: readonly AdmitCall[]): Promise<(AdmitReply | Error)[]> {
  const {
    job,
    caller,
    concurrency,
    shedding,
    flows,
    virtualTime,
    reader,
    time,
    fill = endless,
  } = calls.at(-1) as AdmitCall;
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
    idempotencyMs,
    `${flows ? jobsWithoutTurn[capability] : 0} ${virtualTime} ${fill.waiting} ${fill.active} ${fill.limit} ${fill.share}`,
    caller.budget ? budgetText(caller.budget, time) : '',
    `${caller.rpm ?? 0} ${caller.tpm ?? 0}`,
    reader === undefined ? '' : queueKeysPrefix(capability),
    reader ?? '',
  ];
  for (const call of calls) {
    if (reader !== undefined) keys.push(jobKeys.state(call.job.id));
    pushJob(args, call);
  }
  return (await script(redis, keys, args)).map(readReply);
}

function budgetText({ amount, period }: NonNullable<Caller['budget']>, now: number): string {
  const { name, from } = budgetPeriodAt(period, now);
  return `${amount} ${name} ${from}`;
}

function pushJob(args: (string | number)[], call: AdmitCall): void {
  const { job, stored, queued, notAfter } = call;
  const [field, value] = storedField(stored);
  args.push(
    job.id,
    job.idempotency ? `${job.idempotency} ${call.bodyHash}` : '',
    holdText(call),
    limitsText(call),
    newStateLifetime(job),
    job.deadlineAt,
    JSON.stringify(job),
    field,
    value,
    queued === undefined ? '' : JSON.stringify(queued).slice(1),
    notAfter,
  );
}

function readReply(text: string): AdmitReply | Error {
  const [name, detail = '', running, turn, lowered, left = '', isQueued] = text.split('\t');
  if (name === 'error') return new Error(detail);
  const verdict = readVerdict(verdicts, name);
  if (verdict instanceof Error) return verdict;
  return {
    verdict,
    detail,
    running: Number(running),
    turn: Number(turn),
    lowered: Number(lowered),
    left,
    isQueued: isQueued === '1',
  };
}

function holdText({ hold }: AdmitCall): string {
  if (hold === 'unknown') return '?';
  if (hold === 'unpriced') return '';
  const { fixed, outputPrice, outputTokens, isGiven } = hold;
  const least = isGiven ? outputTokens : Math.min(minTokens, outputTokens);
  return `${fixed} ${outputPrice} ${outputTokens} ${least}`;
}

/** What the limits for a minute count of a job; '' where there is none. */
function limitsText({ caller, job, tokens }: AdmitCall): string {
  const { rpm, tpm, modelLimits } = caller;
  // A model may have any name: only its own limits count.
  const own = modelLimits !== undefined && Object.hasOwn(modelLimits, job.model) ? modelLimits[job.model] : undefined;
  if (rpm === undefined && tpm === undefined && own === undefined) return '';
  const counted = tpm === undefined && own?.tpm === undefined ? 0 : tokens;
  const model = own === undefined ? '-' : encodeURIComponent(job.model);
  return `${own?.rpm ?? 0} ${own?.tpm ?? 0} ${counted} ${model}`;
}

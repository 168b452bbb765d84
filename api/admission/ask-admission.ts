import { isMedia } from '../../shared/capabilities/capability.ts';
import type { Catalogue } from '../../shared/catalogue/catalogue.ts';
import type { Config } from '../../shared/config/config.ts';
import { ApiError } from '../../shared/errors.ts';
import { readerOf } from '../../shared/jobs/inbox.ts';
import { createJobState, type JobIdentity, shardOf } from '../../shared/jobs/job-state.ts';
import type { EndJobContext } from '../../shared/jobs/settlement/end-job.ts';
import { settlementMs } from '../../shared/jobs/settlement/settle.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import type { RedisClock } from '../../shared/redis/redis-clock.ts';
import { isRefusal, untilAccepted } from '../../shared/redis/script.ts';
import type { CallerDirectory } from '../auth/authenticate.ts';
import { assertInScope, assertOneModel, type Caller } from '../auth/caller.ts';
import type { Limits } from '../http/request-report.ts';
import type { ParsedRequest } from '../pipeline/parsed-request.ts';
import { assertVendorIds } from '../pipeline/vendor-facts.ts';
import type { AccountLoader } from './account-loader.ts';
import { type AdmitCall, type AdmitReply, admit, mayAwaitSettlement, type Shedding } from './admit.ts';
import { flexShedding } from './flex-lane.ts';
import { limitedModel } from './limited-model.ts';
import type { LoadGauge } from './load-gauge.ts';
import { maximumCost } from './maximum-cost.ts';
import type { ForecastRefusal } from './queue-forecast.ts';
import type { Submission } from './submission.ts';

/** Dependencies of asking for admission. */
export interface AskAdmissionDependencies extends Pick<EndJobContext, 'queue'> {
  readonly payingKeys: PayingKeys;
  readonly load: LoadGauge;
  readonly callers: CallerDirectory;
  readonly accounts: AccountLoader;
  readonly clock: RedisClock;
  readonly redis: RedisClient;
  readonly processId: string;
  readonly isCluster: boolean;
  readonly config: Config;
  readonly catalogue: Catalogue;
}

/** Maximum attempts at an admission: each retry follows another missing fact. */
const maxAskings = 8;

/** Estimated bytes per token of a request, for limits on tokens; actual usage replaces the estimate. */
const bytesPerToken = 4;
/** Expected tokens of an image: what vendors count for one of about a megapixel. */
const tokensPerImage = 1000;

/** The result of an admission, and its caller. */
export interface Admission {
  readonly reply: AdmitReply;
  /** The caller as admitted: differs from the submission's if its key has changed. */
  readonly caller: Caller;
  /** Why it would wait too long, if it would. */
  readonly tooLong: ForecastRefusal | undefined;
}

/**
 * Asks for admission, and retries after loading what was missing: the key's flag or the account in Redis, the key's current
 * settings, the job's price, or the settlement of the previous job.
 * @param queued the queue's further data of the job, if it is queued in the same step
 * @param giveUpAt when its caller gets another response, as `performance.now()`
 * @throws ApiError 401, 403 or 503 if that fails.
 */
export async function askAdmission(
  services: AskAdmissionDependencies,
  submission: Submission,
  queued: AdmitCall['queued'],
  giveUpAt: number,
): Promise<Admission> {
  const { payingKeys, load } = services;
  let { caller } = submission;
  // The local count only grows: jobs that have left the queue must not cause a refusal.
  if (load.shedding(submission.job.capability) === 'queue_full') await load.refreshQueues();
  const tooLong = forecast(services, submission);
  const isFlex = submission.job.lane === 'flex';
  const noRoom = isFlex ? await untilAdmitted(() => flexShedding(services, submission.job), giveUpAt) : undefined;
  let hasPaused = false;
  let hold: AdmitCall['hold'] = payingKeys.has(caller) ? maximumCost(services, submission) : 'unknown';
  for (let askings = 1; ; askings++) {
    const refusedFor = shedding(services, submission, tooLong) ?? noRoom;
    const flows = load.flows(submission.job.capability);
    const asking = { submission, caller, hold, queued, giveUpAt, shedding: refusedFor, flows };
    let reply: AdmitReply;
    load.asking(submission.job);
    try {
      reply = await untilAdmitted(() => ask(services, asking), giveUpAt);
    } finally {
      load.answered(submission.job);
    }
    if (askings >= maxAskings) return { reply, caller, tooLong };
    if (reply.verdict === 'unknown') await services.callers.restoreFlag(caller);
    else if (reply.verdict === 'changed') caller = await readChanged(services, submission, caller);
    else if (reply.verdict === 'unloaded') await services.accounts.load(caller, reply.detail);
    else if (reply.verdict === 'unasked') {
      payingKeys.note(caller);
      hold = maximumCost(services, submission);
    } else if (reply.verdict === 'late' && performance.now() < giveUpAt) {
      // It is not late: Redis's clock, or ours, has jumped.
      await services.clock.measure();
    } else if (mayAwaitSettlement(reply) && !hasPaused) {
      // A caller may react to an answer before its job is settled, which closely follows its end.
      hasPaused = true;
      await new Promise((resolve) => setTimeout(resolve, settlementMs));
    } else return { reply, caller, tooLong };
  }
}

/** Judges a request by how long it would wait, against how long its caller, or its deadline, allows. */
function forecast({ load, clock, config }: AskAdmissionDependencies, { job, isAwaited, ownDeadlineAt }: Submission) {
  // It waits longer than others, on purpose.
  if (job.lane === 'flex') return undefined;
  return load.refusal(job.capability, {
    account: job.account,
    isHigh: job.lane === 'high',
    at: performance.now(),
    queueWaitMs: isAwaited ? config.queueWaitMs : Number.POSITIVE_INFINITY,
    deadlineMs: (ownDeadlineAt ?? job.deadlineAt) - clock.now(),
    startMs: job.startBy === undefined ? undefined : job.startBy - clock.now(),
  });
}

function shedding(
  { load }: AskAdmissionDependencies,
  { job }: Submission,
  tooLong: ForecastRefusal | undefined,
): Shedding | undefined {
  const reason = load.shedding(job.capability);
  // It waits beside the queue, which has its own bounds.
  if (job.lane === 'flex') return reason === 'queue_full' ? undefined : reason;
  if (reason !== undefined || tooLong === undefined) return reason;
  return tooLong.isOwnLine ? 'line_wait' : 'queue_wait';
}

/** One attempt. */
interface Asking extends Pick<AdmitCall, 'caller' | 'hold' | 'queued' | 'shedding' | 'flows'> {
  readonly submission: Submission;
  readonly giveUpAt: number;
}

/** Calls a script, and retries while Redis accepts no writes: it had no effect then. @throws ApiError 503 if that persists. */
export async function untilAdmitted<T>(call: () => Promise<T>, giveUpAt: number): Promise<T> {
  try {
    return await untilAccepted(call, giveUpAt - performance.now());
  } catch (error) {
    throw isRefusal(error) ? notAdmitted(error) : error;
  }
}

/** The 503 for a request that was not queued in time, of which the queue has nothing. */
export function notAdmitted(cause?: unknown): ApiError {
  return new ApiError('service_unavailable', 'The queue is temporarily unavailable. Retry the request.', {
    reason: 'queue_unavailable',
    retryAfterMs: 2000,
    cause,
  });
}

/** Tokens that a request is expected to have, by the length of its text: an image in it counts as one, not as its data. */
export function expectedInputTokens(parsed: Pick<ParsedRequest, 'request' | 'extent'> | undefined): number {
  if (parsed === undefined) return 0;
  const { request, extent } = parsed;
  const { imageInputs = 0, mediaBytes = 0 } = extent ?? {};
  return Math.ceil(Math.max(0, request.length - mediaBytes) / bytesPerToken) + imageInputs * tokensPerImage;
}

function ask(
  services: AskAdmissionDependencies,
  { submission, caller, hold, queued, giveUpAt, shedding, flows }: Asking,
): Promise<AdmitReply> {
  const { job, bodyHash, cacheMs: bindingMs, replaces, isRetry, stored, stateField, parsed } = submission;
  const { redis, processId, isCluster, config, clock } = services;
  const call: AdmitCall = {
    job,
    caller,
    concurrency: caller.concurrency ?? config.keyConcurrency,
    bodyHash,
    bindingMs,
    replaces,
    isRetry,
    shedding,
    flows,
    time: clock.now(),
    notAfter: clock.at(giveUpAt),
    fill: job.lane === 'flex' ? undefined : fillFor(services, job),
    hold,
    tokens: expectedInputTokens(parsed) + (parsed?.extent?.outputTokens ?? 0) * (parsed?.extent?.choices ?? 1),
    limitedAs: caller.modelLimits && limitedModel(services.catalogue, job, caller.modelLimits),
    reader: isCluster ? undefined : readerOf(processId),
    stored,
    stateField,
    // In another lane it is queued afterwards.
    queued: job.lane === undefined ? queued : undefined,
  };
  return isCluster ? askBesideState(services, call) : admit(redis, call);
}

/** The fill of a queue for a job of the account. */
function fillFor({ load, config }: AskAdmissionDependencies, job: JobIdentity): AdmitCall['fill'] {
  const { capability, account } = job;
  const own = { beside: load.beside(capability, account), maxOwn: load.maxWaitingOf(capability, account) };
  return { ...load.fill(capability), ...own, limit: config.queueLimit, share: config.accountQueueShare };
}

/** Asks on a Cluster, where the state is made beside the admission. */
async function askBesideState({ redis, processId }: AskAdmissionDependencies, call: AdmitCall): Promise<AdmitReply> {
  const { job } = call;
  if (isMadeWhenQueued(job, true)) return await admit(redis, call);
  // The state is on another node. It may be written concurrently: without a hold it means nothing. A keyed job's is written
  // before: a repeat that finds the binding without the state would consider the job lost, and run it again.
  const making = createJobState(redis, job, readerOf(processId), call.stored, call.stateField);
  if (job.idempotency !== '') await making;
  const [reply] = await Promise.all([admit(redis, call), making]);
  return reply;
}

/** The caller by its key's newest settings. @throws ApiError 401, 403, 503. */
async function readChanged(services: AskAdmissionDependencies, submission: Submission, old: Caller): Promise<Caller> {
  const { job, parsed } = submission;
  const caller = await services.callers.reload(old);
  assertInScope(caller, { id: job.model, capability: job.capability });
  assertOneModel(caller, parsed?.extras);
  assertVendorIds(caller, parsed?.vendorIds);
  submission.job = { ...job, lane: allowedLane(job, caller) };
  return caller;
}

/** The lane of a job under a key that may allow it less by now. */
function allowedLane(
  { lane, capability }: Pick<JobIdentity, 'lane' | 'capability'>,
  { maxPriority }: Caller,
): JobIdentity['lane'] {
  if (maxPriority === 'low' && capability !== 'video') return 'flex';
  return lane === 'high' && maxPriority !== 'high' ? undefined : lane;
}

/** The limits in force, for the response's headers. */
export function limitsOf({ reply, caller }: Admission, { keyConcurrency }: Pick<Config, 'keyConcurrency'>): Limits {
  const { running, left } = reply;
  const { rpm: requests, tpm: tokens, concurrency = keyConcurrency } = caller;
  return { running, concurrency, requests, tokens, left };
}

/** Maximum number of remembered keys. */
const maxKeys = 10_000;

/**
 * Keys whose admission needs an estimate of the cost: those with a budget, and those of limited accounts, which is known
 * after the first admission. Only a hint, which saves the others the estimate and these the retry.
 */
export class PayingKeys {
  readonly #ids = new Set<string>();

  /** Notes that the caller's hold was needed. The set may be cleared, as active keys are noted again. */
  note({ apiKeyId }: Caller): void {
    if (this.#ids.size >= maxKeys) this.#ids.clear();
    this.#ids.add(apiKeyId);
  }

  has({ apiKeyId, budget }: Caller): boolean {
    return budget !== undefined || this.#ids.has(apiKeyId);
  }
}

/**
 * Whether a job must be in the database before it is accepted: kept answers (asynchronous, keyed, background) and media
 * work. A response in the foreground need not be: like any plain answer it must not wait for a database that is down.
 */
export function isRecordedFirst(job: Pick<JobIdentity, 'retentionMs' | 'capability' | 'resource'>): boolean {
  return isMedia[job.capability] || (job.retentionMs > 0 && job.resource !== 'foreground');
}

/**
 * Whether a job's state is made by the step that queues it: on a Cluster, where both are on one node, if nothing looks for the state
 * before. A repeat would consider a keyed job without a state lost; a resource's state has its request.
 */
export function isMadeWhenQueued(job: JobIdentity, isCluster: boolean): boolean {
  return isCluster && shardOf(job) > 0 && job.idempotency === '' && job.resource === undefined && !isRecordedFirst(job);
}

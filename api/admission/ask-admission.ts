import type { Catalogue, RoutedModel } from '../../shared/catalogue/catalogue.ts';
import { routeName } from '../../shared/catalogue/route-name.ts';
import type { Config } from '../../shared/config/config.ts';
import { ApiError } from '../../shared/errors.ts';
import { readerOf } from '../../shared/jobs/inbox.ts';
import { createJobState } from '../../shared/jobs/job-state.ts';
import { formatDollars } from '../../shared/money/dollars.ts';
import { type Hold, holdOf } from '../../shared/money/hold.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import type { RedisClock } from '../../shared/redis/redis-clock.ts';
import { isRefusal, untilAccepted } from '../../shared/redis/redis-refusal.ts';
import type { CallerDirectory } from '../auth/authenticate.ts';
import { notValid } from '../auth/authenticate.ts';
import type { Caller } from '../auth/caller.ts';
import { assertInScope } from '../auth/key-scopes.ts';
import { accountSuspended } from '../management/sign-in/account-suspended.ts';
import type { BilledExtra } from '../pipeline/billed-extras.ts';
import { assertVendorIds } from '../pipeline/vendor-ids.ts';
import type { AccountLoader } from './account-loader.ts';
import { type AdmitCall, type AdmitReply, admit } from './admit.ts';
import { type Limits, limitHeaders } from './limit-headers.ts';
import type { LoadGauge } from './load-gauge.ts';
import type { PayingKeys } from './paying-keys.ts';
import { rateLimitReached } from './rate-limit-reached.ts';
import { requestFacts } from './request-facts.ts';
import type { Submission } from './submission.ts';

/** Dependencies of asking for admission. */
export interface AskAdmissionDependencies {
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

/** How long after its end a job may take to be settled, where nothing is amiss. */
const settlementMs = 30;

/** Maximum attempts at an admission: each retry follows another missing fact. */
const maxAskings = 8;

/** Estimated bytes per token of a request, for limits on tokens; actual usage replaces the estimate. */
const bytesPerToken = 4;

/** The result of an admission, and its caller. */
export interface Admission {
  readonly reply: AdmitReply;
  /** The caller as admitted: differs from the submission's if its key has changed. */
  readonly caller: Caller;
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
  let hasPaused = false;
  let hold: AdmitCall['hold'] = payingKeys.has(caller) ? reckon(services, submission) : 'unknown';
  for (let askings = 1; ; askings++) {
    const asking = { submission, caller, hold, queued, giveUpAt };
    const reply = await untilAdmitted(() => ask(services, asking), giveUpAt);
    if (askings >= maxAskings) return { reply, caller };
    if (reply.verdict === 'unknown') await services.callers.restoreFlag(caller);
    else if (reply.verdict === 'changed') caller = await readChanged(services, submission, caller);
    else if (reply.verdict === 'unloaded') await services.accounts.load(caller, reply.detail);
    else if (reply.verdict === 'unasked') {
      payingKeys.note(caller);
      hold = reckon(services, submission);
    } else if (reply.verdict === 'late' && performance.now() < giveUpAt) {
      // It is not late: Redis's clock, or ours, has jumped.
      await services.clock.measure();
    } else if (reply.verdict === 'concurrency' && !hasPaused) {
      // A caller may react to an answer before its job is settled, which closely follows its end.
      hasPaused = true;
      await new Promise((resolve) => setTimeout(resolve, settlementMs));
    } else return { reply, caller };
  }
}

/** One attempt. */
interface Asking extends Pick<AdmitCall, 'caller' | 'hold' | 'queued'> {
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
    retryAfterMs: 2000,
    cause,
  });
}

function ask(
  services: AskAdmissionDependencies,
  { submission, caller, hold, queued, giveUpAt }: Asking,
): Promise<AdmitReply> {
  const { job, bodyHash, placed: stored, parsed } = submission;
  const { redis, processId, isCluster, config, load, clock } = services;
  const { flows, virtualTime } = load.clock(job.capability);
  const call: AdmitCall = {
    job,
    caller,
    concurrency: caller.concurrency ?? config.keyConcurrency,
    bodyHash,
    shedding: load.shedding(job.capability),
    flows,
    virtualTime,
    time: clock.now(),
    notAfter: clock.at(giveUpAt),
    fill: { ...load.fill(job.capability), limit: config.queueLimit, share: config.accountQueueShare },
    hold,
    tokens: Math.ceil((parsed?.request.length ?? 0) / bytesPerToken) + (parsed?.extent?.outputTokens ?? 0),
    reader: isCluster ? undefined : readerOf(processId),
    stored,
    queued,
  };
  return isCluster ? askBesideState(services, call) : admit(redis, call);
}

/** Asks on a Cluster, where the state is made beside the admission. */
async function askBesideState({ redis, processId }: AskAdmissionDependencies, call: AdmitCall): Promise<AdmitReply> {
  const { job } = call;
  // The state is on another node. It may be written concurrently: without a hold it means nothing. A keyed job's is written
  // before: a repeat that finds the binding without the state would consider the job lost, and run it again.
  const making = createJobState(redis, job, readerOf(processId), call.stored);
  if (job.idempotency !== '') await making;
  const [reply] = await Promise.all([admit(redis, call), making]);
  return reply;
}

/**
 * The maximum cost of a job, over all routes that may serve it. Unknown if a route has no price, or would request an extra
 * from its vendor that no price covers.
 */
function reckon({ catalogue }: AskAdmissionDependencies, { job, parsed }: Submission): Hold | 'unpriced' {
  const routes = catalogue.routes(job.model, job.capability);
  if (parsed?.unpriced !== undefined || !arePriced(routes, parsed?.excludedRoutes)) return 'unpriced';
  const usualSeconds = Math.max(0, ...routes.map(({ video }) => Number(video?.seconds[0] ?? 0)));
  return holdOf(routes, {
    seconds: usualSeconds,
    ...(parsed ? requestFacts(parsed) : { bytes: 0 }),
  });
}

/** Whether each route that may serve it has a price: on another one everything would be free. */
function arePriced(routes: readonly RoutedModel[], excluded: readonly string[] = []): boolean {
  const hasPrice = ({ prices = {} }: RoutedModel): boolean =>
    Object.values(prices).some((price) => price !== undefined);
  return routes.length > 0 && routes.every((routed) => hasPrice(routed) || excluded.includes(routeName(routed.route)));
}

/** The caller by its key's newest settings. @throws ApiError 401, 403, 503. */
async function readChanged(
  services: AskAdmissionDependencies,
  { job, parsed }: Submission,
  old: Caller,
): Promise<Caller> {
  const caller = await services.callers.reload(old);
  assertInScope(caller, { id: job.model, capability: job.capability });
  assertVendorIds(caller, parsed?.vendorIds);
  return caller;
}

/**
 * The error for a job that was not admitted.
 * @param unpriced an extra of the request that no price covers
 */
export function refusal(
  admission: Admission,
  { config }: { readonly config: Config },
  unpriced?: BilledExtra,
): ApiError {
  const {
    reply: { verdict, detail },
    caller,
  } = admission;
  switch (verdict) {
    case 'reused':
      return new ApiError('idempotency_key_reused', 'This Idempotency-Key was used with a different request body.', {
        param: 'Idempotency-Key',
      });
    case 'concurrency':
      return new ApiError(
        'rate_limit_exceeded',
        `This API key has ${caller.concurrency ?? config.keyConcurrency} unfinished requests, which is as many as it may have at a time.`,
        { retryAfterMs: 1000, headers: limitHeaders(limitsOf(admission, config)) },
      );
    case 'rate':
      return rateRefusal(admission, config);
    case 'balance':
      return quotaRefusal('The balance of this account', detail, `get more credit. ${config.contact}`);
    case 'budget':
      return quotaRefusal('The budget of this API key', detail, 'raise its budget.');
    case 'unpriced':
      return unpriced === undefined ? modelUnpriced() : extraUnpriced(unpriced);
    case 'suspended':
      return accountSuspended(config);
    case 'late':
      return notAdmitted();
    case 'shed':
      return new ApiError(
        'service_unavailable',
        'The service is short of memory and accepts no new work at the moment. Try again later.',
        {
          retryAfterMs: 5000,
        },
      );
    case 'queue_full':
      return new ApiError('service_unavailable', 'The queue is full. Try again later.', {
        retryAfterMs: Math.min(config.queueWaitMs, 10_000),
      });
    case 'queue_share':
      return new ApiError(
        'rate_limit_exceeded',
        `This account has ${detail} unfinished requests, which is its share of the queue. Try again later.`,
        { retryAfterMs: Math.min(config.queueWaitMs, 10_000) },
      );
    case 'unloaded':
    case 'changed':
    case 'unasked':
      return new ApiError('service_unavailable', 'This API key is being changed. Try again.');
    case 'unknown':
    case 'revoked':
      return notValid();
    case 'admitted':
    case 'replay':
      throw new Error(`a job that is ${verdict} is not refused`);
  }
}

function modelUnpriced(): ApiError {
  const message =
    'This model has no price here, so that only accounts and API keys without a limit on their spending can use it.';
  return new ApiError('permission_denied', message, { param: 'model' });
}

function extraUnpriced({ param, name }: BilledExtra): ApiError {
  // A name may be the caller's text.
  const what = /^[\w.-]{1,80}$/.test(name) ? `'${name}'` : 'what it asks for';
  return new ApiError(
    'permission_denied',
    `${what} has no price here, so that only accounts and API keys without a limit on their spending can use it: leave it out. An operator whose vendor does not bill it can list it as unbilled in the configuration file.`,
    { param },
  );
}

/** The limits in force, for the response's headers. */
export function limitsOf({ reply, caller }: Admission, { keyConcurrency }: Pick<Config, 'keyConcurrency'>): Limits {
  const { running, left } = reply;
  const { rpm: requests, tpm: tokens, concurrency = keyConcurrency } = caller;
  return { running, concurrency, requests, tokens, left };
}

/** The error for a limit per minute, whose detail is `requests|tokens limit wait-ms asked model`. */
function rateRefusal(admission: Admission, config: Pick<Config, 'keyConcurrency'>): ApiError {
  const [what = '', limit = '', wait = '', asked = '', model = ''] = admission.reply.detail.split(' ');
  return rateLimitReached({
    whose: model === '' ? 'this API key' : `\`${decodeURIComponent(model)}\` with this API key`,
    what: what === 'tokens' ? 'tokens' : 'requests',
    limit,
    ...(what === 'tokens' && { asked }),
    retryAfterMs: Number(wait),
    // The limit shown is the exhausted one, even if it is the model's.
    headers: limitHeaders({ ...limitsOf(admission, config), [what]: Number(limit) }),
  });
}

/**
 * @param detail the job's maximum cost, and the available amount, in nano-dollars
 * @param remedy an alternative to a smaller request
 */
function quotaRefusal(whose: string, detail: string, remedy: string): ApiError {
  const [cost, left] = detail.split(' ').map((amount) => formatDollars(Number(amount)));
  return new ApiError(
    'insufficient_quota',
    `You exceeded your current quota, please check your plan and billing details. ${whose} is insufficient: this request may cost up to $${cost}; $${left} remains. Lower max_tokens, or ${remedy}`,
  );
}

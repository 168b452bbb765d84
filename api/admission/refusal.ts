import type { Capability } from '../../shared/capabilities/capability.ts';
import type { Config } from '../../shared/config/config.ts';
import { ApiError } from '../../shared/errors.ts';
import { formatDollars } from '../../shared/money/cost.ts';
import { accountSuspended } from '../auth/account-suspended.ts';
import { notValid } from '../auth/authenticate.ts';
import { limitHeaders } from '../http/request-report.ts';
import { keyReused } from '../pipeline/request-fields.ts';
import type { BilledExtra } from '../pipeline/vendor-facts.ts';
import { readShortage } from './admit.ts';
import { type Admission, limitsOf, notAdmitted } from './ask-admission.ts';
import { FlexLaneFullError } from './flex-lane.ts';
import type { LoadGauge } from './load-gauge.ts';
import type { Submission } from './submission.ts';

/** Part of the queue that is to be free before a request that found it full, or its account's share of it, is repeated. */
const freedShare = 0.1;
/** Wait in ms where it is not known how fast the queue drains, and the longest one. */
const usualRetryMs = 10_000;
const maxRetryMs = 60_000;

/** The 503 for a request that was admitted and could not be queued. */
export function notQueued(cause: unknown): ApiError {
  return new ApiError('service_unavailable', 'The request could not be queued. Retry it.', {
    reason: ApiError.from(cause).refusalReason ?? 'queue_unavailable',
    cause,
  });
}

/** The error for a job that was not admitted. */
export function refusal(
  admission: Admission,
  { config, load }: { readonly config: Config; readonly load: Pick<LoadGauge, 'drainMs'> },
  { job, parsed }: Pick<Submission, 'job' | 'parsed'>,
): ApiError {
  const { capability } = job;
  const drainedMs = (): number => {
    const ms = load.drainMs(capability, freedShare * config.queueLimit);
    return ms === undefined ? Math.min(config.queueWaitMs, usualRetryMs) : Math.min(Math.max(1000, ms), maxRetryMs);
  };
  const {
    reply: { verdict, detail },
    caller,
    tooLong,
  } = admission;
  switch (verdict) {
    case 'reused':
      return keyReused();
    case 'concurrency':
      return new ApiError(
        'rate_limit_exceeded',
        `This API key has ${caller.concurrency ?? config.keyConcurrency} unfinished requests, which is as many as it may have at a time.`,
        { reason: 'concurrency', retryAfterMs: 1000, headers: limitHeaders(limitsOf(admission, config)) },
      );
    case 'rate':
      return rateRefusal(admission, config);
    case 'balance':
      return quotaRefusal('balance', { detail, capability, remedy: `get more credit. ${config.contact}` });
    case 'budget':
      return quotaRefusal('budget', { detail, capability, remedy: 'raise its budget.' });
    case 'unpriced':
      return parsed?.unpriced === undefined ? modelUnpriced() : extraUnpriced(parsed.unpriced);
    case 'suspended':
      return accountSuspended(config);
    case 'late':
      return notAdmitted();
    case 'shed':
      return new ApiError(
        'service_unavailable',
        'The service is short of memory and accepts no new work at the moment. Try again later.',
        {
          reason: 'redis_memory',
          retryAfterMs: 5000,
        },
      );
    case 'queue_full':
      return new ApiError('service_unavailable', 'The queue is full. Try again later.', {
        reason: 'queue_full',
        retryAfterMs: drainedMs(),
      });
    case 'queue_wait':
      return new ApiError(
        'service_unavailable',
        `The queue is too long: this request would wait about ${seconds(tooLong?.waitMs)} s. Try again later.`,
        { reason: 'queue_wait', retryAfterMs: tooLong?.retryAfterMs ?? 1000 },
      );
    case 'line_wait':
      return new ApiError(
        'rate_limit_exceeded',
        `This account has too many waiting requests: this one would wait about ${seconds(tooLong?.waitMs)} s. Try again later.`,
        { reason: 'line_wait', retryAfterMs: tooLong?.retryAfterMs ?? 1000 },
      );
    case 'queue_share':
      return new ApiError(
        'rate_limit_exceeded',
        `This account has ${detail} unfinished requests, which is its share of the queue. Try again later.`,
        { reason: 'queue_share', retryAfterMs: drainedMs() },
      );
    case 'flex_full':
    case 'flex_share':
      return new FlexLaneFullError(verdict === 'flex_full' ? 'full' : 'share');
    case 'unloaded':
    case 'changed':
    case 'unasked':
      return new ApiError('service_unavailable', 'This API key is being changed. Try again.', {
        reason: 'key_changing',
      });
    case 'unknown':
    case 'revoked':
      return notValid();
    case 'admitted':
    case 'replay':
      throw new Error(`a job that is ${verdict} is not refused`);
  }
}

function seconds(ms = 0): number {
  return Math.ceil(ms / 1000);
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

/** What unfinished requests hold of the money is mostly free again when they end. */
export const untilReleased = { retryable: true, retryAfterMs: 1000 } as const;

const funds = { balance: 'The balance of this account', budget: 'The budget of this API key' };

/** What a caller of each capability lowers for a request that may cost less. */
const loweredFor: Readonly<Record<Capability, string>> = {
  chat: 'max_tokens',
  embedding: 'the length of the input',
  image: 'n, size or quality',
  transcription: 'the length of the recording',
  speech: 'the length of the input',
  video: 'seconds or size',
};

interface Shortage {
  /** See `readShortage`. */
  readonly detail: string;
  readonly capability: Capability;
  /** An alternative to a smaller request. */
  readonly remedy: string;
}

/** @param what does not suffice */
function quotaRefusal(what: keyof typeof funds, { detail, capability, remedy }: Shortage): ApiError {
  const { cost, left, held } = readShortage(detail);
  const isHeld = held > 0;
  const others = isHeld ? ` beside $${formatDollars(held)} that unfinished requests hold` : '';
  const first = isHeld ? 'Retry once they have ended, lower' : 'Lower';
  return new ApiError(
    'insufficient_quota',
    `You exceeded your current quota, please check your plan and billing details. ${funds[what]} is insufficient: this request may cost up to $${formatDollars(cost)}; $${formatDollars(left)} remains${others}. ${first} ${loweredFor[capability]}, or ${remedy}`,
    { reason: what, ...(isHeld && untilReleased) },
  );
}

const short = { requests: 'RPM', tokens: 'TPM' };

/** A limit per minute that a request exceeds. */
export interface ReachedLimit {
  /** The owner of the limit. */
  readonly whose: string;
  readonly what: keyof typeof short;
  readonly limit: string | number;
  /** Tokens that the request counts as. */
  readonly asked?: string;
  readonly retryAfterMs: number;
  /** The limits in force, for the response's headers. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The 429 for it, worded like OpenAI's, from which clients parse how long to wait. */
export function rateLimitReached({ whose, what, limit, asked, retryAfterMs, headers }: ReachedLimit): ApiError {
  const need = asked === undefined ? '' : `, Requested ${asked}`;
  const seconds = (retryAfterMs / 1000).toFixed(3);
  return new ApiError(
    'rate_limit_exceeded',
    `Rate limit reached for ${whose} on ${what} per min (${short[what]}): Limit ${limit}${need}. Please try again in ${seconds}s.`,
    { reason: 'rate_limit', retryAfterMs, headers },
  );
}

import { budgetHash, budgetPeriodAt } from '../../shared/accounts/account-money.ts';
import type { Catalogue } from '../../shared/catalogue/catalogue.ts';
import type { Config } from '../../shared/config/config.ts';
import { ApiError } from '../../shared/errors.ts';
import { holdOf } from '../../shared/money/hold.ts';
import { accountKeys } from '../../shared/redis/keys.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import type { RedisClock } from '../../shared/redis/redis-clock.ts';
import { isAhead } from '../../shared/redis/script.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';
import { accountSuspended } from '../auth/account-suspended.ts';
import type { CallerDirectory } from '../auth/authenticate.ts';
import type { Caller } from '../auth/caller.ts';
import { readMs } from '../bounds/bounded-reads.ts';
import { limitHeaders } from '../http/request-report.ts';
import type { AccountLoader } from './account-loader.ts';
import { bindingKeys } from './own-binding.ts';
import { rateLimitReached, untilReleased } from './refusal.ts';

/** Dependencies of the gate. */
export interface BodyGateParts {
  readonly redis: RedisClient;
  /** By it admission fills the limits, and knows a budget's period. */
  readonly clock: Pick<RedisClock, 'now'>;
  readonly callers: CallerDirectory;
  readonly accounts: AccountLoader;
  readonly catalogue: Catalogue;
  readonly config: Pick<Config, 'contact'>;
}

/** A request's use of a limit per minute, by its current level. */
interface Level {
  readonly what: 'requests' | 'tokens';
  readonly limit: number;
  readonly level: number;
}

/** How a request may be free, whatever is left of its account's and its key's limits. */
export interface FreeRequest {
  /** Hash of its idempotency key, or '': an existing answer costs nothing. */
  readonly idempotency?: string;
  /** Whether it may get the answer of another request, cached or still being made, which is only known once it is read. */
  readonly mayHaveAnswer?: boolean;
  /** Whether it asks what it would cost, and runs nothing. */
  readonly isQuote?: boolean;
}

/**
 * Refuses a large body before it is read if admission would refuse it whatever it contains: a revoked key, a suspended
 * account, an exhausted balance or budget, an exhausted rate. It takes one round trip and does not count against the limits;
 * `admit` still decides.
 */
export class BodyGate {
  readonly #parts: BodyGateParts;

  constructor(parts: BodyGateParts) {
    this.#parts = parts;
  }

  /**
   * Returns the caller with its key's current settings.
   * @throws ApiError 401, 403, 429, 503.
   */
  async assertMayBegin(caller: Caller, free: FreeRequest = {}): Promise<Caller> {
    return await inTime(this.#mayBegin(caller, free));
  }

  async #mayBegin(
    caller: Caller,
    { idempotency = '', mayHaveAnswer = false, isQuote = false }: FreeRequest,
  ): Promise<Caller> {
    const { callers, redis } = this.#parts;
    const [current, asItWas] = await Promise.all([callers.assertActive(caller), this.#refusal(caller)]);
    const refusal = current === caller ? asItWas : await this.#refusal(current);
    if (refusal === undefined) return current;
    const mayBeFree = refusal.code !== 'permission_denied';
    if (mayBeFree && (mayHaveAnswer || isQuote)) return current;
    const isReplay =
      mayBeFree && idempotency !== '' && (await redis.exists(...bindingKeys(current.account, idempotency))) > 0;
    if (isReplay) return current;
    throw refusal;
  }

  async #refusal(caller: Caller): Promise<ApiError | undefined> {
    const { account, apiKeyId, budgetId, budget } = caller;
    const { redis, clock } = this.#parts;
    const [money, spent, rates] = await Promise.all([
      this.#money(caller),
      budget === undefined
        ? []
        : redis.hmget(budgetHash({ account, apiKeyId, budgetId, period: budget.period }), 'period', 'spent', 'held'),
      caller.rpm !== undefined || caller.tpm !== undefined
        ? redis.hmget(accountKeys.rate(account, apiKeyId), 'requests ', 'tokens ')
        : [],
    ]);
    const [credit, charged, held, suspended] = money;
    if (suspended === '1') {
      return accountSuspended(this.#parts.config);
    }
    return (
      rateRefusal(caller, levelsOf(caller, rates, clock.now())) ??
      this.#budgetRefusal(caller, spent) ??
      (credit ? this.#moneyRefusal('balance', Number(credit) - Number(charged ?? 0), Number(held ?? 0)) : undefined)
    );
  }

  async #money(caller: Caller): Promise<(string | null | undefined)[]> {
    const { redis, accounts } = this.#parts;
    const read = () => redis.hmget(accountKeys.account(caller.account), 'credit', 'charged', 'held', 'suspended');
    const money = await read();
    if (money[0] !== null) return money;
    await accounts.load(caller, 'account');
    return await read();
  }

  /** Admission loads what is not loaded yet. */
  #budgetRefusal({ budget }: Caller, [period, spent, held]: (string | null | undefined)[]): ApiError | undefined {
    if (budget === undefined || period !== budgetPeriodAt(budget.period, this.#parts.clock.now()).name)
      return undefined;
    return this.#moneyRefusal('budget', budget.amount - Number(spent ?? 0), Number(held ?? 0));
  }

  /** @param held by unfinished requests, of what is not spent */
  #moneyRefusal(what: 'balance' | 'budget', unspent: number, held: number): ApiError | undefined {
    const left = unspent - held;
    if (left > 0 || (left === 0 && hasFreeModel(this.#parts.catalogue))) return undefined;
    const isHeld = unspent > 0;
    const others = isHeld ? ' beside what unfinished requests hold' : '';
    return new ApiError(
      'insufficient_quota',
      what === 'balance'
        ? `Insufficient balance: nothing is left of the credit of this account${others}. ${this.#parts.config.contact}`
        : `Insufficient budget: nothing is left of the budget of this API key${others}.`,
      { reason: what, ...(isHeld && untilReleased) },
    );
  }
}

/** Waits for work. @throws ApiError 503 on a timeout. */
async function inTime<T>(work: Promise<T>): Promise<T> {
  const done = await withTimeout(
    work.then((value) => ({ value })),
    readMs,
  );
  if (done !== undefined) return done.value;
  throw new ApiError('service_unavailable', 'Accounts cannot be checked at the moment. Try again later.', {
    reason: 'queue_unavailable',
    retryAfterMs: 2000,
  });
}

const freeOf = new WeakMap<ReturnType<Catalogue['list']>, boolean>();

/** Whether some model is free for any request. */
function hasFreeModel(catalogue: Catalogue): boolean {
  const models = catalogue.list();
  const known = freeOf.get(models);
  if (known !== undefined) return known;
  const facts = { bytes: 1_000_000, images: 1, seconds: 1000, characters: 1_000_000 };
  const isFree = models.some(({ id, capability }) => {
    const routes = catalogue.routes(id, capability);
    if (routes.every(({ prices }) => prices === undefined)) return false;
    const { fixed, outputPrice } = holdOf(routes, facts);
    return fixed === 0 && outputPrice === 0;
  });
  freeOf.set(models, isFree);
  return isFree;
}

/** Levels of the key's own limits, as in rate-buckets.lua. Models' limits are left to admission: the model is unknown. */
function levelsOf({ rpm, tpm }: Caller, rates: (string | null | undefined)[], now: number): (Level | undefined)[] {
  return [rpm, tpm].map((limit, index) => {
    const [used, at] = (rates[index] ?? '0 0').split(' ').map(Number) as [number, number];
    if (limit === undefined) return undefined;
    return {
      limit,
      what: index === 0 ? ('requests' as const) : ('tokens' as const),
      level: isAhead(at, now) ? 0 : Math.max(0, Math.min(used, 2 * limit) - (Math.max(0, now - at) * limit) / 60_000),
    };
  });
}

function rateRefusal({ rpm, tpm }: Caller, levels: readonly (Level | undefined)[]): ApiError | undefined {
  const full = levels.find((each) => each !== undefined && each.level + 1 > each.limit);
  if (full === undefined) return undefined;
  const left = levels.map((each) => (each === undefined ? '- -' : leftOf(each))).join(' ');
  const headers = limitHeaders({ running: 0, concurrency: undefined, requests: rpm, tokens: tpm, left });
  const retryAfterMs = Math.ceil(((full.level + 1 - full.limit) * 60_000) / full.limit);
  return rateLimitReached({ whose: 'this API key', what: full.what, limit: full.limit, retryAfterMs, headers });
}

/** In the format of rate-buckets.lua. */
function leftOf({ limit, level }: Level): string {
  return `${Math.max(0, Math.floor(limit - level))} ${(level * 60_000) / limit}`;
}

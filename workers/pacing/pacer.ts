import type { CapacityLimits, VendorLimits, VendorSettings } from '../../shared/config/vendor-settings.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import type { RedisClock } from '../../shared/redis/redis-clock.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { CallStock } from './call-stock.ts';
import { LearnedLimits } from './learned-limits.ts';
import { type CapacityScope, type ReturnedCall, reserveCall, returnCalls, scopesText } from './reserve-call.ts';
import { TokenForecast } from './token-forecast.ts';

/** Batch window for calls that have ended. */
const returnMs = 20;
/** How often the leases of calls under way are renewed, in ms; well below their length. */
const renewMs = 2000;
/** Calls returned or renewed by one script, which blocks Redis while it runs. */
const maxReturned = 200;
/** Keys among which a call may choose. */
const maxKeys = 32;
/** Scopes that are kept: names of open vendors' models come from callers. */
const maxScopes = 1000;

const noLimits: VendorLimits = { vendor: {}, key: {}, models: {} };
const unlimited: CapacityScope = { name: undefined, limits: {} };

/** The route of a call. */
interface PacedRoute {
  readonly vendor: string;
  readonly model: string;
}

/** A reserved call. */
export interface CallSlot {
  /** Id of the key that it is reserved for. */
  readonly account: string;
  /** Until it may start, in ms. */
  readonly waitMs: number;
  /** Gives it back. @param tokens that it has used; undefined: as expected */
  end(tokens: number | undefined): void;
}

/** Why a call cannot be reserved now. */
export interface FullRoute {
  /** Until capacity is expected, in ms. */
  readonly waitMs: number;
  /** The interval at which such calls can start, in ms; 0 if unknown. */
  readonly intervalMs: number;
  /** How long a job may wait for it at most, in ms; left out: until its deadline. */
  readonly maxWaitMs?: number;
  /** Other jobs wait for it already. */
  readonly isLine?: boolean;
}

/** The scopes that limit a call. */
interface CallScopes {
  readonly vendorScope: CapacityScope;
  readonly keys: readonly { readonly key: CapacityScope; readonly model: CapacityScope }[];
  readonly text: string;
  readonly hasTokens: boolean;
  /** Calls at a time. */
  readonly parallel: number;
}

interface RunningCall extends ReturnedCall {
  readonly vendor: string;
  readonly startedAt: number;
}

/** Keeps the calls of all workers within the limits of their vendors. What has no limits costs nothing. */
export class Pacer {
  readonly learned: LearnedLimits;
  readonly #redis: RedisClient;
  readonly #log: Pick<Logger, 'warn'>;
  readonly #workerId: string;
  readonly #forecast = new TokenForecast();
  readonly #stock = new CallStock();
  #limits: ReadonlyMap<string, VendorLimits>;
  /** By vendor, key and model. */
  readonly #scopes = new Map<string, CallScopes>();
  #calls = 0;
  /** Calls under way of which only some may run at a time. */
  readonly #leased = new Map<string, RunningCall>();
  #ended: RunningCall[] = [];
  #returning: Promise<void> | undefined;
  #returnTimer: NodeJS.Timeout | undefined;
  readonly #renewTimer: NodeJS.Timeout;

  private constructor(
    redis: RedisClient,
    workerId: string,
    vendors: Readonly<Record<string, VendorSettings>>,
    learned: LearnedLimits,
    log: Pick<Logger, 'warn'>,
  ) {
    this.learned = learned;
    this.#redis = redis;
    this.#workerId = workerId;
    this.#log = log;
    this.#limits = limitsOf(vendors);
    this.#renewTimer = setInterval(() => void this.#renew(), renewMs);
    this.#renewTimer.unref();
  }

  /** Opens one that knows what other workers have learned. */
  static async open(
    { redis, clock, log }: { redis: RedisClient; clock: Pick<RedisClock, 'now'>; log: Pick<Logger, 'warn'> },
    workerId: string,
    vendors: Readonly<Record<string, VendorSettings>>,
  ): Promise<Pacer> {
    return new Pacer(redis, workerId, vendors, await LearnedLimits.open(redis, clock, log), log);
  }

  /** Replaces the limits for future calls. */
  replace(vendors: Readonly<Record<string, VendorSettings>>): void {
    this.#limits = limitsOf(vendors);
    this.#scopes.clear();
    this.#stock.clear();
  }

  /** Whether a route has limits. */
  isPaced({ vendor, model }: PacedRoute): boolean {
    return (this.#limits.size > 0 && this.#limits.has(vendor)) || this.learned.has(vendor, model);
  }

  /** Whether the configuration limits a vendor. */
  hasLimits(vendor: string): boolean {
    return this.#limits.has(vendor);
  }

  /** Whether the calls of a vendor that run at a time are limited, so that the end of one is capacity for the next. */
  isParallelLimited(vendor: string): boolean {
    const limits = this.#limits.get(vendor);
    if (limits === undefined) return false;
    return [limits.vendor, limits.key, ...Object.values(limits.models)].some(
      ({ maxParallelRequests }) => maxParallelRequests !== undefined,
    );
  }

  /**
   * Reserves a call of a route.
   * @param accounts ids of the eligible keys, in order of preference
   * @param inputTokens expected; the output is expected to be as long as that of other calls of the route
   * @param maxOutput maximum output tokens
   */
  async reserve(
    route: PacedRoute,
    accounts: readonly string[],
    inputTokens: number,
    maxOutput: number | undefined,
  ): Promise<CallSlot | FullRoute> {
    const { vendorScope, keys, text, hasTokens, parallel } = this.#scopesOf(route, accounts);
    const name = `${route.vendor}/${route.model}`;
    // Tokens differ, and calls at a time must be known by name.
    const isStocked = !hasTokens && parallel === Number.POSITIVE_INFINITY;
    const stocked = isStocked ? this.#stock.take(name, accounts) : undefined;
    if (stocked !== undefined) return { account: stocked, waitMs: 0, end: () => undefined };
    const tokens = hasTokens ? inputTokens + this.#forecast.outputOf(name, maxOutput) : 0;
    const id = `${this.#workerId}:${++this.#calls}`;
    const more = isStocked ? this.#stock.wanted(name) : 0;
    const reply = await reserveCall(this.#redis, { id, vendor: route.vendor, tokens, more, scopes: text });
    if (reply.key === undefined) {
      const intervalMs = reply.isParallel ? this.#forecast.intervalOf(name, parallel) : 0;
      return { waitMs: reply.waitMs, intervalMs: Math.max(reply.intervalMs, intervalMs) };
    }
    if (more > 0) this.#stock.put(name, accounts[reply.key] as string, reply.more);
    const { key, model } = keys[reply.key] as (typeof keys)[number];
    const scopes = [vendorScope, key, model].filter(isReturned);
    const call: RunningCall = {
      id,
      vendor: route.vendor,
      scopes,
      hasEnded: true,
      unused: 0,
      startedAt: performance.now(),
    };
    const isLeased = scopes.some(({ limits: { maxParallelRequests } }) => maxParallelRequests !== undefined);
    if (isLeased) this.#leased.set(id, call);
    let hasEnded = false;
    return {
      account: accounts[reply.key] as string,
      waitMs: reply.waitMs,
      end: (used) => {
        if (hasEnded) return;
        hasEnded = true;
        this.#leased.delete(id);
        if (hasTokens || isLeased)
          this.#forecast.note(name, used && used - inputTokens, performance.now() - call.startedAt);
        const unused = hasTokens && used !== undefined ? tokens - used : 0;
        if (isLeased || (unused !== 0 && scopes.length > 0)) this.#return({ ...call, unused });
      },
    };
  }

  /** What limits a call. It changes rarely, unless it was learned: that grows with time. */
  #scopesOf({ vendor, model }: PacedRoute, accounts: readonly string[]): CallScopes {
    const [only] = accounts;
    const isKept = accounts.length === 1 && !this.learned.has(vendor, model);
    const name = `${vendor} ${only} ${model}`;
    const kept = isKept ? this.#scopes.get(name) : undefined;
    if (kept !== undefined) return kept;
    const limits = this.#limits.get(vendor) ?? noLimits;
    const own = Object.hasOwn(limits.models, model) ? (limits.models[model] as CapacityLimits) : {};
    const vendorScope = scopeOf(vendor, limits.vendor);
    const keys = accounts.slice(0, maxKeys).map((account) => ({
      key: scopeOf(`${vendor}/${account}`, limits.key),
      model: scopeOf(
        `${vendor}/${account}/${encodeURIComponent(model)}`,
        stricter(own, this.learned.limitsOf({ vendor, account, model })),
      ),
    }));
    const all = [vendorScope, ...keys.flatMap(({ key, model: ofModel }) => [key, ofModel])];
    const scopes = {
      ...{ vendorScope, keys, text: scopesText(all), parallel: parallelOf(limits, own) },
      hasTokens: all.some(({ limits: { tpm } }) => tpm !== undefined),
    };
    if (isKept && this.#scopes.size < maxScopes) this.#scopes.set(name, scopes);
    return scopes;
  }

  /** Returns what has ended; what goes on expires with its leases. */
  async close(): Promise<void> {
    clearInterval(this.#renewTimer);
    this.learned.close();
    await this.#returning;
    await this.#returnEnded();
  }

  #return(call: RunningCall): void {
    this.#ended.push(call);
    this.#returnTimer ??= setTimeout(() => {
      this.#returning = this.#returnEnded();
    }, returnMs);
  }

  async #returnEnded(): Promise<void> {
    clearTimeout(this.#returnTimer);
    this.#returnTimer = undefined;
    const ended = this.#ended;
    this.#ended = [];
    await this.#send(ended);
  }

  async #renew(): Promise<void> {
    await this.#send([...this.#leased.values()].map((call) => ({ ...call, hasEnded: false })));
  }

  async #send(calls: readonly RunningCall[]): Promise<void> {
    const vendors = new Set(calls.map(({ vendor }) => vendor));
    for (const vendor of vendors) {
      const own = calls.filter((call) => call.vendor === vendor);
      for (let at = 0; at < own.length; at += maxReturned) {
        // What is not returned expires.
        await returnCalls(this.#redis, vendor, own.slice(at, at + maxReturned)).catch((error) =>
          this.#log.warn({ err: error, vendor }, 'returning the capacity of vendor calls failed'),
        );
      }
    }
  }
}

function limitsOf(vendors: Readonly<Record<string, VendorSettings>>): ReadonlyMap<string, VendorLimits> {
  return new Map(
    Object.entries(vendors).flatMap(([name, { limits }]) => (limits === undefined ? [] : [[name, limits]])),
  );
}

function scopeOf(name: string, limits: CapacityLimits): CapacityScope {
  const { rpm, tpm, maxParallelRequests } = limits;
  return rpm === undefined && tpm === undefined && maxParallelRequests === undefined ? unlimited : { name, limits };
}

/** Both limits, set and learned. */
function stricter(set: CapacityLimits, { rpm, tpm }: CapacityLimits): CapacityLimits {
  if (rpm === undefined && tpm === undefined) return set;
  return { ...set, rpm: lower(set.rpm, rpm), tpm: lower(set.tpm, tpm) };
}

function lower(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.min(one, other);
}

/** Whether anything of a scope is returned when a call ends. */
function isReturned({ limits: { tpm, maxParallelRequests } }: CapacityScope): boolean {
  return tpm !== undefined || maxParallelRequests !== undefined;
}

function parallelOf({ vendor, key }: VendorLimits, own: CapacityLimits): number {
  const bounds = [vendor, key, own].map(({ maxParallelRequests = Number.POSITIVE_INFINITY }) => maxParallelRequests);
  return Math.min(...bounds);
}

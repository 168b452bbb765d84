import type { CapacityLimits, VendorLimits, VendorSettings } from '../../shared/config/vendor-settings.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import type { RedisClock } from '../../shared/redis/redis-clock.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import {
  type CallScopes,
  callScopes,
  type PacedKey,
  type PacedRoute,
  requestLimits,
  sharedLimits,
} from './call-scopes.ts';
import { CallStock, type StockedCall, type StockedCalls } from './call-stock.ts';
import { LearnedLimits } from './learned-limits.ts';
import { additionalIds, type ReturnedCall, reserveCall, returnCalls } from './reserve-call.ts';
import { TokenForecast } from './token-forecast.ts';

/** Batch window for calls that have ended. */
const returnMs = 20;
/** How often the leases of calls under way are renewed, in ms; well below their length. */
const renewMs = 2000;
/** Calls returned or renewed by one script, which blocks Redis while it runs. */
const maxReturned = 200;
/** Scopes that are kept: names of open vendors' models come from callers. */
const maxScopes = 1000;

const noLimits: VendorLimits = { vendor: {}, key: {}, models: {} };

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
  /** How long a call of it takes, in ms; 0 or left out: unknown. */
  readonly callMs?: number;
}

interface RunningCall extends ReturnedCall {
  readonly vendor: string;
}

/** Keeps the calls of all workers within the limits of their vendors. What has no limits costs nothing. */
export class Pacer {
  readonly learned: LearnedLimits;
  readonly #redis: RedisClient;
  readonly #log: Pick<Logger, 'warn'>;
  readonly #workerId: string;
  readonly #forecast = new TokenForecast();
  readonly #stock = new CallStock((unused) => this.#giveBack(unused));
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

  /**
   * Whether the calls of a vendor that run at a time are limited, so that the end of one is capacity for the next: of any of its
   * routes, or of the same route.
   */
  parallelLimit(vendor: string): 'vendor' | 'route' | undefined {
    const limits = this.#limits.get(vendor);
    if (limits === undefined) return undefined;
    const isLimited = ({ maxParallelRequests }: CapacityLimits): boolean => maxParallelRequests !== undefined;
    if (isLimited(limits.vendor) || isLimited(limits.key)) return 'vendor';
    return Object.values(limits.models).some(isLimited) ? 'route' : undefined;
  }

  /** How many calls of a route may run at a time; Infinity if that is not limited. */
  parallelCalls(route: PacedRoute): number {
    return this.#scopesOf(route, []).parallel;
  }

  /** How long the calls of a route take, in ms; 0 if unknown. */
  callMs({ vendor, model }: PacedRoute): number {
    return this.#forecast.intervalOf(`${vendor}/${model}`, 1);
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
    const { keys, text, hasTokens, parallel } = this.#scopesOf(route, accounts);
    const name = `${route.vendor}/${route.model}`;
    const tokens = hasTokens ? inputTokens + this.#forecast.outputOf(name, maxOutput) : 0;
    await this.#stock.coming(name);
    const stocked = this.#stock.take(name, accounts, tokens);
    if (stocked !== undefined) return this.#slot(name, stocked, 0, inputTokens);
    const id = `${this.#workerId}:${++this.#calls}`;
    const more = this.#stock.wanted(name);
    const reserving = reserveCall(this.#redis, { id, vendor: route.vendor, tokens, more, scopes: text });
    if (more > 0) {
      const stocking = reserving.then((reply) => {
        const ids = additionalIds(id, reply.more);
        return reply.key === undefined
          ? undefined
          : { key: keys[reply.key] as PacedKey, ids, tokens: ids.length * tokens };
      });
      void this.#stock.fill(name, stocking);
    }
    const reply = await reserving;
    if (reply.key === undefined) {
      const intervalMs = reply.isParallel ? this.#forecast.intervalOf(name, parallel) : 0;
      return { waitMs: reply.waitMs, intervalMs: Math.max(reply.intervalMs, intervalMs) };
    }
    const key = keys[reply.key] as PacedKey;
    return this.#slot(name, { key, id, tokens }, reply.waitMs, inputTokens);
  }

  /**
   * Reserves a further call of a job that has one already: of the requests a minute that are set, as its tokens are that one's. What
   * was learned is learned from jobs, not from the calls of each.
   * @returns ms until it may start, or until it can be reserved
   */
  async reserveFurther(route: PacedRoute, account: string): Promise<{ isReserved: boolean; waitMs: number }> {
    const { vendor } = route;
    const limits = requestLimits(this.#limits.get(vendor) ?? noLimits);
    const { text, hasRequests } = callScopes(route, [account], limits, () => ({}));
    if (!hasRequests) return { isReserved: true, waitMs: 0 };
    const id = `${this.#workerId}:${++this.#calls}`;
    const { key, waitMs } = await reserveCall(this.#redis, { id, vendor, tokens: 0, scopes: text });
    return { isReserved: key !== undefined, waitMs };
  }

  /**
   * Reserves a call beside the others of a job that has one already: one of the calls at a time, of which half are left to other jobs.
   * @returns undefined if there is none now
   */
  async reserveBeside(route: PacedRoute, account: string): Promise<Pick<CallSlot, 'end'> | undefined> {
    const { vendor, model } = route;
    const shared = sharedLimits(this.#limits.get(vendor) ?? noLimits);
    const { keys, text, parallel } = callScopes(route, [account], shared, () => ({}));
    // The job's own call takes one.
    if (parallel < 2) return undefined;
    const id = `${this.#workerId}:${++this.#calls}`;
    const { key } = await reserveCall(this.#redis, { id, vendor, tokens: 0, scopes: text });
    if (key === undefined) return undefined;
    return this.#slot(`${vendor}/${model}`, { key: keys[key] as PacedKey, id, tokens: 0 }, 0, 0);
  }

  /** @param name of the route */
  #slot(name: string, { key, id, tokens }: StockedCall, waitMs: number, inputTokens: number): CallSlot {
    const { account, vendor, returned, isLeased } = key;
    const startedAt = performance.now();
    const call: RunningCall = {
      id,
      vendor,
      scopes: returned,
      hasEnded: true,
      reservedTokens: tokens,
      usedTokens: tokens,
    };
    if (isLeased) this.#leased.set(id, call);
    let hasEnded = false;
    const end = (used: number | undefined): void => {
      if (hasEnded) return;
      hasEnded = true;
      this.#leased.delete(id);
      // One that its vendor has refused says nothing of the others.
      if (used !== 0) this.#forecast.note(name, used && used - inputTokens, performance.now() - startedAt);
      const usedTokens = used ?? tokens;
      // Of requests a minute alone nothing is returned.
      if (returned.length > 0 && (isLeased || usedTokens !== tokens)) this.#return({ ...call, usedTokens });
    };
    return { account, waitMs, end };
  }

  #giveBack({ key: { vendor, returned, isLeased }, ids, tokens }: StockedCalls): void {
    if (tokens === 0 && !isLeased) return;
    ids.forEach((id, index) => {
      const reservedTokens = index === 0 ? tokens : 0;
      this.#return({ id, vendor, scopes: returned, hasEnded: true, reservedTokens, usedTokens: 0 });
    });
  }

  /** What limits a call. It changes rarely, unless it was learned: that grows with time. */
  #scopesOf({ vendor, model }: PacedRoute, accounts: readonly string[]): CallScopes {
    const [only] = accounts;
    const isKept = accounts.length === 1 && !this.learned.has(vendor, model);
    const name = `${vendor} ${only} ${model}`;
    const kept = isKept ? this.#scopes.get(name) : undefined;
    if (kept !== undefined) return kept;
    const limits = this.#limits.get(vendor) ?? noLimits;
    const scopes = callScopes({ vendor, model }, accounts, limits, (account) =>
      this.learned.limitsOf({ vendor, account, model }),
    );
    // Callers may name models of an open vendor as they like.
    if (this.#scopes.size >= maxScopes) this.#scopes.clear();
    if (isKept) this.#scopes.set(name, scopes);
    return scopes;
  }

  /** Returns what has ended; what goes on expires with its leases. */
  async close(): Promise<void> {
    clearInterval(this.#renewTimer);
    this.learned.close();
    this.#stock.clear();
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

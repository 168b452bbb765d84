import type { CapacityLimits } from '../../shared/config/vendor-settings.ts';
import { capacityPrefix } from '../../shared/redis/keys.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import { inBatches, isAheadScript, loadScript, untilAccepted } from '../../shared/redis/script.ts';
import type { CapacityScope } from './call-scopes.ts';

const reserveScript = loadScript<string[]>(new URL('./reserve-call.lua', import.meta.url), isAheadScript);
const returnScript = loadScript<number>(new URL('./return-calls.lua', import.meta.url), isAheadScript);

/** How far ahead a call is reserved, in ms: until then its job waits in the worker. */
export const aheadMs = 1000;
/** How long a worker that is gone keeps its calls under way, in ms. */
export const callLeaseMs = 6000;
/** How long Redis may refuse a reservation, in ms: its job's lease lasts longer. */
const patienceMs = 5000;

/** A call to be reserved. */
export interface ReserveCall {
  /** Unique per call. */
  readonly id: string;
  readonly vendor: string;
  /** Tokens that it is expected to use. */
  readonly tokens: number;
  /** How many more such calls to reserve, if there is plenty of capacity; see `additionalIds`. */
  readonly more?: number;
  /** See `CallScopes`. */
  readonly scopes: string;
}

/** A reservation, or what keeps the call from one. */
export interface ReserveReply {
  /** Index of the key; undefined: none has capacity near enough. */
  readonly key: number | undefined;
  /** Until the call may start, or until capacity is expected. */
  readonly waitMs: number;
  /** How much of the vendor's time such a call takes: the interval at which they can start; 0 if that is not known. */
  readonly intervalMs: number;
  /** Whether calls under way are in the way. */
  readonly isParallel: boolean;
  /** How many more calls were reserved, all of which may start now. */
  readonly more: number;
}

/** Reserves a call; see reserve-call.lua. Those of a vendor that come together cost one command. */
export const reserveCall = inBatches(reserveAll, (one, other) => one.vendor === other.vendor, 'retried');

async function reserveAll(redis: RedisClient, calls: readonly ReserveCall[]): Promise<ReserveReply[]> {
  const [{ vendor }] = calls as [ReserveCall];
  const args: (string | number)[] = [aheadMs, callLeaseMs];
  for (const { id, tokens, more = 0, scopes } of calls) args.push(id, tokens, more, scopes);
  const replies = await reserveScript(redis, [capacityPrefix(vendor)], args);
  return replies.map(readReply);
}

function readReply(text: string): ReserveReply {
  const [key, waitMs, intervalMs, isParallel, more] = text.split(' ');
  return {
    key: key === '0' ? undefined : Number(key) - 1,
    waitMs: Math.max(0, Math.ceil(Number(waitMs))),
    intervalMs: Number(intervalMs),
    isParallel: isParallel === '1',
    more: Number(more),
  };
}

/** Ids of the calls that were reserved in addition to one, as reserve-call.lua makes them. */
export function additionalIds(id: string, more: number): string[] {
  return Array.from({ length: more }, (_, index) => `${id}.${index + 1}`);
}

/** A reserved call that has ended, or goes on. */
export interface ReturnedCall {
  readonly id: string;
  readonly scopes: readonly CapacityScope[];
  readonly hasEnded: boolean;
  readonly reservedTokens: number;
  readonly usedTokens: number;
}

interface ReturnedScope {
  readonly limits: CapacityLimits;
  unused: number;
  readonly ended: string[];
  readonly renewed: string[];
}

/** Returns ended calls of one vendor, and renews those under way; see return-calls.lua. */
export async function returnCalls(redis: RedisClient, vendor: string, calls: readonly ReturnedCall[]): Promise<void> {
  const scopes = new Map<string, ReturnedScope>();
  for (const call of calls) for (const scope of call.scopes) addTo(scopes, scope, call);
  const args: (string | number)[] = [callLeaseMs];
  for (const [name, { limits, unused, ended, renewed }] of scopes)
    args.push(name, limits.tpm ?? '', unused, ended.length, renewed.length, ...ended, ...renewed);
  await untilAccepted(() => returnScript(redis, [capacityPrefix(vendor)], args), patienceMs);
}

function addTo(scopes: Map<string, ReturnedScope>, { name = '', limits }: CapacityScope, call: ReturnedCall): void {
  let returned = scopes.get(name);
  if (returned === undefined) {
    returned = { limits, unused: 0, ended: [], renewed: [] };
    scopes.set(name, returned);
  }
  if (call.hasEnded && limits.tpm !== undefined) {
    // As reserve-call.lua counts them: no call has more than a minute's.
    returned.unused += Math.min(call.reservedTokens, limits.tpm) - Math.min(call.usedTokens, limits.tpm);
  }
  if (limits.maxParallelRequests !== undefined) (call.hasEnded ? returned.ended : returned.renewed).push(call.id);
}

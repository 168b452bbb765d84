import type { Capability } from '../capabilities/capability.ts';
import type { BudgetPeriod } from './account-money.ts';

/** `operator`: for /admin/v1 only; `console`: an account's playground key, whose text is not kept. */
export type KeyKind = 'standard' | 'operator' | 'console';

/** Effect of a closed connection on a key's request: see the header `X-Sluice-On-Disconnect`. */
type OnDisconnect = 'cancel' | 'continue';

/** How to treat parameters that a model's vendor does not support and that change the answer. Hints are always dropped. */
export type UnsupportedParameters = 'refuse' | 'drop';

/** Who sets the breakpoints of Claude's prompt cache; `automatic`: the gateway, in requests without any. */
export type CacheBreakpoints = 'caller' | 'automatic';

/** Before which other requests one is served: `low`: none, it waits for spare capacity; `high`: all others, up to a share. */
export type Priority = 'low' | 'normal' | 'high';

/** A key's spending limit per period. */
interface KeyBudget {
  /** Nano-dollars. */
  readonly amount: number;
  readonly period: BudgetPeriod;
}

/** Requests and tokens per minute; undefined: no limit. */
export interface RateLimits {
  readonly rpm?: number | undefined;
  readonly tpm?: number | undefined;
}

/** How long an answer may be cached, in seconds: by a key's setting, or by the header `X-Sluice-Cache`. */
export const maxCacheSeconds = 604_800;

/** A key's settings, all of which can be changed. Undefined means no limit, or the gateway's default. */
export interface KeySettings {
  /** When it expires, ms since 1970. */
  readonly expiresAt: number | undefined;
  /** Capabilities it may use; undefined: all. */
  readonly capabilities: readonly Capability[] | undefined;
  /** Ids of the models it may use; a trailing star matches any suffix. Undefined: all. */
  readonly models: readonly string[] | undefined;
  readonly rpm: number | undefined;
  readonly tpm: number | undefined;
  /** Additional limits of single models, by id as in requests. */
  readonly modelLimits: Readonly<Record<string, RateLimits>> | undefined;
  readonly budget: KeyBudget | undefined;
  /** Maximum number of unfinished jobs; undefined: the gateway's default. */
  readonly concurrency: number | undefined;
  readonly onDisconnect: OnDisconnect | undefined;
  /** Undefined: refused. */
  readonly unsupportedParameters: UnsupportedParameters | undefined;
  /** Undefined: the caller. */
  readonly cacheBreakpoints: CacheBreakpoints | undefined;
  /** Priority of requests that choose none; undefined: normal. */
  readonly priority: Priority | undefined;
  /** The highest priority of its requests, if its account may have it, too; undefined: normal. */
  readonly maxPriority: Priority | undefined;
  /** Whether its identical requests at once share one job, see the header `X-Sluice-Single-Flight`. Undefined: no. */
  readonly singleFlight: boolean | undefined;
  /**
   * How old a cached answer to its requests may be, in seconds, and how long their answers are cached: for those that choose nothing
   * by the header `X-Sluice-Cache`. Undefined: they are not cached.
   */
  readonly cacheSeconds: number | undefined;
  /**
   * Ids of objects in the operator's own vendor accounts (files, vector stores, containers, …) that requests may name; a
   * trailing star matches any suffix. Only operators set it. Undefined: none.
   */
  readonly vendorIds: readonly string[] | undefined;
}

/** An API key; times are milliseconds since 1970. */
export interface ApiKey extends KeySettings {
  readonly id: string;
  readonly accountId: string;
  readonly name: string;
  /** SHA-256 of the whole key, hexadecimal. Not a secret, but of no use to outsiders. */
  readonly hash: string;
  /** The key's first characters, by which people recognize it. */
  readonly prefix: string;
  readonly kind: KeyKind;
  /** Incremented by every change, starting at 1. */
  readonly revision: number;
  readonly createdAt: number;
  readonly revokedAt: number | undefined;
  /** Id of the key that replaced it. */
  readonly rotatedTo: string | undefined;
  /** Id of the first of the keys that replaced one another, which spend one budget; undefined: it was never rotated. */
  readonly budgetId: string | undefined;
  /** Up to a minute behind. */
  readonly lastUsedAt: number | undefined;
}

/** A key to be created. */
export interface NewApiKey extends Partial<KeySettings> {
  readonly accountId: string;
  readonly name: string;
  /** Left out: standard. */
  readonly kind?: KeyKind;
}

/** Whether a key is valid at a time. */
export function keyStatus(
  { revokedAt, expiresAt }: Pick<ApiKey, 'revokedAt' | 'expiresAt'>,
  now: number,
): 'active' | 'expired' | 'revoked' {
  if (revokedAt !== undefined) return 'revoked';
  return expiresAt !== undefined && expiresAt <= now ? 'expired' : 'active';
}

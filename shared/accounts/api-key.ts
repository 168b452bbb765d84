import type { Capability } from '../capabilities/capability.ts';
import type { BudgetPeriod } from './account-money.ts';

/** `operator`: for /admin/v1 only; `console`: the playground's, one of an account, whose text nobody has. */
export type KeyKind = 'standard' | 'operator' | 'console';

/** What an API key may do when its connection leaves: see the header `X-Sluice-On-Disconnect`. */
type OnDisconnect = 'cancel' | 'continue';

/** What becomes of parameters that a model's vendor does not know and that change its answer. Hints are always dropped. */
export type UnsupportedParameters = 'refuse' | 'drop';

/** What a key may spend in a period. */
interface KeyBudget {
  /** Nano-dollars. */
  readonly amount: number;
  readonly period: BudgetPeriod;
}

/** Requests and tokens in a minute; undefined: no limit. */
export interface RateLimits {
  readonly rpm?: number | undefined;
  readonly tpm?: number | undefined;
}

/** What is set for a key, and can be changed. Undefined is no limit, or the gateway's default. */
export interface KeySettings {
  /** When it stops to be valid, ms since 1970. */
  readonly expiresAt: number | undefined;
  /** What it may be used for; undefined: everything. */
  readonly capabilities: readonly Capability[] | undefined;
  /** Ids of the models it may use; one that ends in a star stands for all that begin so. Undefined: all. */
  readonly models: readonly string[] | undefined;
  readonly rpm: number | undefined;
  readonly tpm: number | undefined;
  /** Further limits of single models, by their ids as requests name them. */
  readonly modelLimits: Readonly<Record<string, RateLimits>> | undefined;
  readonly budget: KeyBudget | undefined;
  /** Unfinished jobs the key may have; undefined: the gateway's default. */
  readonly concurrency: number | undefined;
  readonly onDisconnect: OnDisconnect | undefined;
  /** Undefined: refused. */
  readonly unsupportedParameters: UnsupportedParameters | undefined;
  /**
   * Ids of what lies in the operator's own accounts at vendors (files, vector stores, containers, …) that requests may name; one
   * that ends in a star stands for all that begin so. Only operators set it. Undefined: none.
   */
  readonly vendorIds: readonly string[] | undefined;
}

/** An API key as the rest of the code knows it; times are milliseconds since 1970. */
export interface ApiKey extends KeySettings {
  readonly id: string;
  readonly accountId: string;
  readonly name: string;
  /** SHA-256 of the whole key, hexadecimal. Not a secret, but of no use to anybody outside. */
  readonly hash: string;
  /** The key's first characters, by which people recognise it. */
  readonly prefix: string;
  readonly kind: KeyKind;
  /** Rises with every change, from 1 on. */
  readonly revision: number;
  readonly createdAt: number;
  readonly revokedAt: number | undefined;
  /** Id of the key that took its place. */
  readonly rotatedTo: string | undefined;
  /** Up to a minute behind. */
  readonly lastUsedAt: number | undefined;
}

/** A key to be made. */
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

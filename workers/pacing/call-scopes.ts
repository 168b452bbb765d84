import type { CapacityLimits, VendorLimits } from '../../shared/config/vendor-settings.ts';

/** Keys among which a call may choose. */
const maxKeys = 32;

/** Half characters, which no URL has: a caller may name any model of an open vendor. */
const loneSurrogates = /\p{Surrogate}/gu;

/** The route of a call. */
export interface PacedRoute {
  readonly vendor: string;
  readonly model: string;
}

/** Something that a vendor limits. */
export interface CapacityScope {
  /** Without white space; undefined if nothing is limited. */
  readonly name: string | undefined;
  readonly limits: CapacityLimits;
}

/** A key of a vendor. */
export interface PacedKey {
  readonly vendor: string;
  /** Its id. */
  readonly account: string;
  /** What of a call with it is returned at its end. */
  readonly returned: readonly CapacityScope[];
  /** Whether its calls at a time are limited. */
  readonly isLeased: boolean;
}

/** The scopes that limit a call. */
export interface CallScopes {
  readonly keys: readonly PacedKey[];
  /** As reserve-call.lua reads them: of the vendor, then of each key and of the model on it. */
  readonly text: string;
  readonly hasTokens: boolean;
  readonly hasRequests: boolean;
  /** Calls at a time. */
  readonly parallel: number;
}

const unlimited: CapacityScope = { name: undefined, limits: {} };

/**
 * The scopes that limit a call of a route.
 * @param accounts ids of the eligible keys, in order of preference
 * @param learned what is known of the limits of a key for the model
 */
export function callScopes(
  { vendor, model }: PacedRoute,
  accounts: readonly string[],
  limits: VendorLimits,
  learned: (account: string) => CapacityLimits,
): CallScopes {
  const own = Object.hasOwn(limits.models, model) ? (limits.models[model] as CapacityLimits) : {};
  const vendorScope = scopeOf(vendor, limits.vendor);
  const all = [vendorScope];
  const keys = accounts.slice(0, maxKeys).map((account) => {
    const key = scopeOf(`${vendor}/${account}`, limits.key);
    const name = `${vendor}/${account}/${encodeURIComponent(model.replace(loneSurrogates, '\ufffd'))}`;
    const ofModel = scopeOf(name, stricter(own, learned(account)));
    all.push(key, ofModel);
    return pacedKeyOf(vendor, account, [vendorScope, key, ofModel]);
  });
  const hasTokens = all.some(({ limits: { tpm } }) => tpm !== undefined);
  const hasRequests = all.some(({ limits: { rpm } }) => rpm !== undefined);
  return { keys, text: scopesText(all), parallel: parallelOf(limits, own), hasTokens, hasRequests };
}

/** The same limits, of requests a minute alone. */
export function requestLimits(limits: VendorLimits): VendorLimits {
  return changed(limits, ({ rpm }) => (rpm === undefined ? {} : { rpm }));
}

/** The same limits, of half of the calls at a time alone. */
export function sharedLimits(limits: VendorLimits): VendorLimits {
  return changed(limits, ({ maxParallelRequests: most }) =>
    most === undefined ? {} : { maxParallelRequests: Math.floor(most / 2) },
  );
}

function changed(
  { vendor, key, models }: VendorLimits,
  change: (limits: CapacityLimits) => CapacityLimits,
): VendorLimits {
  const own = Object.entries(models).map(([model, limits]) => [model, change(limits)] as const);
  return { vendor: change(vendor), key: change(key), models: Object.fromEntries(own) };
}

/** See `CallScopes`. */
export function scopesText(scopes: readonly CapacityScope[]): string {
  return scopes
    .map(({ name = '-', limits: { rpm, tpm, maxParallelRequests } }) =>
      [name, rpm ?? '-', tpm ?? '-', maxParallelRequests ?? '-'].join(' '),
    )
    .join(' ');
}

/** A key that these scopes limit. */
function pacedKeyOf(vendor: string, account: string, scopes: readonly CapacityScope[]): PacedKey {
  const isLeased = scopes.some(({ limits: { maxParallelRequests } }) => maxParallelRequests !== undefined);
  const returned = scopes.filter(
    ({ limits: { tpm, maxParallelRequests } }) => tpm !== undefined || maxParallelRequests !== undefined,
  );
  return { vendor, account, returned, isLeased };
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

function parallelOf({ vendor, key }: VendorLimits, own: CapacityLimits): number {
  const bounds = [vendor, key, own].map(({ maxParallelRequests = Number.POSITIVE_INFINITY }) => maxParallelRequests);
  return Math.min(...bounds);
}

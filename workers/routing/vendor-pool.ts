import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { VendorSettings } from '../../shared/config/vendor-settings.ts';
import type { KeyCheckOutcome, KeyHealth } from '../../shared/queue/worker-registry.ts';
import type { Draw } from '../../shared/runtime/rendezvous.ts';
import { createVendor } from '../vendors/registry.ts';
import type { Account, AccountRefusal, CoolingAccount, NamedAccount } from './account.ts';
import { keyHealthOf, refusalOf } from './key-health.ts';
import { mediaGate } from './media-gate.ts';
import { RetiredAccounts } from './retired-accounts.ts';

/** A call lasts no longer, in ms, unless its job is background work: callers may set a deadline of a day. */
export const usualMaxCallMs = 86_400_000;

interface PooledVendor {
  readonly settings: VendorSettings;
  readonly accounts: readonly CoolingAccount[];
  /** Index of the account that is next in the rotation. */
  next: number;
  /** Models for which a key was limited of late. */
  readonly limitedModels: Set<string>;
}

/** The vendors that are on, each with all of its keys, and which keys are cooling down. */
export class VendorPool {
  readonly #vendors = new Map<string, PooledVendor>();
  readonly #retired: RetiredAccounts;

  /** @param maxCallMs how long connections of a vendor that a reload has removed may still be used, in ms */
  constructor(vendors: Readonly<Record<string, VendorSettings>>, maxCallMs = usualMaxCallMs) {
    this.#retired = new RetiredAccounts(maxCallMs);
    this.replace(vendors);
  }

  /** Number of a vendor's keys. */
  keysOf(name: string): number {
    return this.#vendors.get(name)?.accounts.length ?? 1;
  }

  /** Names of the vendors. */
  names(): string[] {
    return [...this.#vendors.keys()];
  }

  /** The account with that id, or any account of the vendor if that key is gone; undefined if the vendor is off. */
  find(name: string, id?: string): Account | undefined {
    const accounts = this.#vendors.get(name)?.accounts;
    return accounts?.find((account) => account.id === id) ?? accounts?.[0];
  }

  /**
   * The account that runs a task: also after a reload that has removed its key or its vendor. Another key may be of an account that
   * does not know the task; it comes first only once the vendor has refused the removed one.
   */
  findOfTask(name: string, id?: string): Account | undefined {
    const found = this.find(name, id);
    if (found?.id === id) return found;
    const removed = this.#retired.find(name, id);
    return removed === undefined || (found !== undefined && this.#retired.isRefused(removed)) ? found : removed;
  }

  /** Records that the vendor refuses the key of a task, which may be one that a reload has removed. */
  refuseOfTask(account: Account): void {
    this.#retired.refuse(account);
  }

  /** Whether the vendor has a key that is not cooling down for that model. */
  isWarm(name: string, model: string): boolean {
    const accounts = this.#vendors.get(name)?.accounts ?? [];
    const now = performance.now();
    return accounts.some((account) => coolsUntil(account, model) <= now);
  }

  /**
   * The first account that is not cooling down, or if all are, the one that cools down the soonest.
   * @param draw by which they are ordered; undefined: in rotation
   */
  pick(name: string, model: string, draw?: Draw): Account | undefined {
    const pooled = this.#vendors.get(name);
    const [only] = pooled?.accounts ?? [];
    if (pooled === undefined || pooled.accounts.length === 1) return only;
    const now = performance.now();
    return ordered(pooled, draw).reduce((best, account) =>
      Math.max(now, coolsUntil(account, model)) < Math.max(now, coolsUntil(best, model)) ? account : best,
    );
  }

  /** The same, of those that are not cooling down and have none of these ids. */
  pickOther(name: string, model: string, ids: readonly string[], draw?: Draw): Account | undefined {
    const pooled = this.#vendors.get(name);
    if (pooled === undefined) return undefined;
    const now = performance.now();
    return ordered(pooled, draw).find((account) => coolsUntil(account, model) <= now && !ids.includes(account.id));
  }

  /** Ids of the accounts that are not cooling down, the next in the rotation first. */
  warm(name: string, model: string): string[] {
    const pooled = this.#vendors.get(name);
    if (pooled === undefined) return [];
    const now = performance.now();
    const { accounts, next } = pooled;
    return [...accounts.slice(next), ...accounts.slice(0, next)]
      .filter((account) => coolsUntil(account, model) <= now)
      .map(({ id }) => id);
  }

  /** Cools a key down: for one model, or for all of them. */
  coolDown({ vendor, id }: NamedAccount, ms: number, model?: string): void {
    const account = this.#vendors.get(vendor.name)?.accounts.find((each) => each.id === id);
    if (account === undefined) return;
    const now = performance.now();
    const until = now + ms;
    if (model === undefined) {
      account.coolsUntil = Math.max(account.coolsUntil, until);
      return;
    }
    for (const [each, end] of account.coolingModels) if (end <= now) account.coolingModels.delete(each);
    account.coolingModels.set(model, Math.max(account.coolingModels.get(model) ?? 0, until));
  }

  /** Cools a key down because its vendor limits it for a model. */
  limit({ vendor, id }: NamedAccount, ms: number, model: string): void {
    const pooled = this.#vendors.get(vendor.name);
    const account = pooled?.accounts.find((each) => each.id === id);
    if (pooled === undefined || account === undefined) return;
    pooled.limitedModels.add(model);
    const now = performance.now();
    for (const [each, end] of account.limitedModels) if (end <= now) account.limitedModels.delete(each);
    account.limitedModels.set(model, Math.max(account.limitedModels.get(model) ?? 0, now + ms));
  }

  /** Whether calls of the vendor's model are limited, by the configuration or as was learned. */
  isLimited(name: string, model: string): boolean {
    const pooled = this.#vendors.get(name);
    if (pooled === undefined) return false;
    return pooled.settings.limits !== undefined || (pooled.limitedModels.size > 0 && pooled.limitedModels.has(model));
  }

  /** Forgets which models were limited of late, except the known ones. */
  forgetLimits(isKnown: (vendor: string, model: string) => boolean): void {
    for (const [name, { limitedModels }] of this.#vendors)
      for (const model of limitedModels) if (!isKnown(name, model)) limitedModels.delete(model);
  }

  /**
   * For how long all keys of the vendor are limited for the model, in ms; 0 if one is not. Refused ones count only if there are no
   * others: nothing is called with them meanwhile.
   * @param only id of the only eligible key
   */
  limitedMs(name: string, model: string, only?: string): number {
    const accounts = this.#vendors.get(name)?.accounts ?? [];
    const now = performance.now();
    let until = Number.POSITIVE_INFINITY;
    let refusedUntil = Number.POSITIVE_INFINITY;
    for (const account of accounts) {
      if (only !== undefined && account.id !== only) continue;
      const limitedUntil = account.limitedModels.get(model) ?? 0;
      if (refusalEnds(account, model) > now) refusedUntil = Math.min(refusedUntil, limitedUntil);
      else until = Math.min(until, limitedUntil);
    }
    if (!Number.isFinite(until)) until = refusedUntil;
    return Number.isFinite(until) ? Math.max(0, until - now) : 0;
  }

  /** Records that the vendor refuses a key. @returns whether that is new */
  refuse({ vendor, id }: Account, refusal: AccountRefusal): boolean {
    const account = this.#vendors.get(vendor.name)?.accounts.find((each) => each.id === id);
    if (account === undefined) return false;
    const isNews = refusalOf(account) === undefined;
    account.refusal = refusal;
    account.refusedAt = performance.now();
    return isNews;
  }

  /** Clears the refusal of a key that the vendor has accepted again. @param model it was accepted for; omitted: altogether */
  accept({ vendor, id }: Account, model?: string): void {
    const account = this.#vendors.get(vendor.name)?.accounts.find((each) => each.id === id);
    if (account === undefined || (account.refusal?.model ?? model) !== model) return;
    account.refusal = undefined;
  }

  /** The accounts whose keys were not checked, of the vendors that need one, by vendor. */
  unchecked(): (readonly Account[])[] {
    const keyed = [...this.#vendors.values()].filter(({ settings }) => settings.row.needsKey);
    return keyed.map(({ accounts }) => accounts.filter(({ checked }) => checked === undefined));
  }

  /** Records the outcome of a key check. */
  noteCheck({ vendor, id }: Account, outcome: KeyCheckOutcome): void {
    const account = this.#vendors.get(vendor.name)?.accounts.find((each) => each.id === id);
    if (account !== undefined) account.checked = outcome;
  }

  /** How many keys each vendor has, and how many of them are cooling down, altogether or for some model. */
  keyHealth(): KeyHealth[] {
    return [...this.#vendors].map(([vendor, { accounts }]) => keyHealthOf(vendor, accounts));
  }

  /** Replaces the vendors for future calls. Running calls may finish with those that are removed. */
  replace(vendors: Readonly<Record<string, VendorSettings>>): void {
    const changed = new Map<string, PooledVendor>();
    for (const [name, pooled] of this.#vendors) {
      if (Object.hasOwn(vendors, name) && isDeepStrictEqual(vendors[name], pooled.settings)) continue;
      this.#vendors.delete(name);
      changed.set(name, pooled);
      for (const account of pooled.accounts) this.#retired.add(account);
    }
    for (const [name, settings] of Object.entries(vendors)) {
      if (!this.#vendors.has(name)) this.#vendors.set(name, openVendor(name, settings, changed.get(name)));
    }
  }

  /** Closes all connections, including those in use. */
  async close(): Promise<void> {
    const accounts = [...this.#vendors.values()].flatMap((pooled) => pooled.accounts);
    await Promise.all([this.#retired.close(), ...accounts.map(({ vendor }) => vendor.close())]);
  }
}

/** @param before the same vendor with other settings: what was found of keys that stay holds, unless they are another server's */
function openVendor(name: string, settings: VendorSettings, before: PooledVendor | undefined): PooledVendor {
  const media = mediaGate(settings);
  const known = before?.settings.baseUrl === settings.baseUrl ? before.accounts : [];
  const accounts = settings.apiKeys.map((apiKey): CoolingAccount => {
    const id = createHash('sha256').update(`sluice account ${apiKey}`).digest('hex').slice(0, 12);
    const found = { coolsUntil: 0, coolingModels: new Map(), limitedModels: new Map() };
    const same = known.find((each) => each.id === id) ?? {
      ...found,
      refusal: undefined,
      refusedAt: 0,
      checked: undefined,
    };
    return { ...same, vendor: createVendor(name, settings, apiKey), media, id };
  });
  const limited = accounts.flatMap(({ limitedModels }) => [...limitedModels.keys()]);
  return { settings, accounts, next: 0, limitedModels: new Set(limited) };
}

function ordered(pooled: PooledVendor, draw: Draw | undefined): readonly CoolingAccount[] {
  if (pooled.accounts.length === 1) return pooled.accounts;
  return draw === undefined ? rotated(pooled) : drawn(pooled.accounts, draw);
}

/** A vendor's accounts, by the largest number drawn for their ids. */
function drawn(accounts: readonly CoolingAccount[], draw: Draw): readonly CoolingAccount[] {
  return accounts
    .map((account) => ({ account, drawn: draw(account.id) }))
    .sort((one, other) => other.drawn - one.drawn)
    .map(({ account }) => account);
}

/** A vendor's accounts, starting with the next in the rotation, which advances by one. */
function rotated(pooled: PooledVendor): readonly CoolingAccount[] {
  const { accounts, next } = pooled;
  pooled.next = (next + 1) % accounts.length;
  return [...accounts.slice(next), ...accounts.slice(0, next)];
}

function coolsUntil(account: CoolingAccount, model: string): number {
  return Math.max(refusalEnds(account, model), account.limitedModels.get(model) ?? 0);
}

function refusalEnds(account: CoolingAccount, model: string): number {
  return Math.max(account.coolsUntil, account.coolingModels.get(model) ?? 0);
}

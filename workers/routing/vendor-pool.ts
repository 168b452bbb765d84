import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { VendorSettings } from '../../shared/config/vendor-settings.ts';
import type { KeyCheckOutcome, KeyHealth, KeyRefusal } from '../../shared/queue/worker-registry.ts';
import { MediaGate } from '../queue/media-gate.ts';
import { createVendor } from '../vendors/registry.ts';
import type { Vendor } from '../vendors/vendor.ts';

/** How long connections of a vendor that was taken out by a reload may go on being used. */
const retiredMs = 3_600_000;

/** A vendor as one of its keys reaches it. */
export interface Account {
  readonly vendor: Vendor;
  /** What its requests go through. */
  readonly media: MediaGate;
  /** A name for the key, which does not give it away: what one key has begun another may not see. */
  readonly id: string;
  /** How the vendor has refused the key, which it has not taken since; undefined: it has not. */
  readonly refusal: AccountRefusal | undefined;
}

/** How a vendor has refused a key: as a whole, or where a model is named for that one. */
export interface AccountRefusal extends KeyRefusal {
  readonly model: string | undefined;
}

interface CoolingAccount extends Account {
  refusal: AccountRefusal | undefined;
  checked: KeyCheckOutcome | undefined;
  /** Until when the key is to be left alone, in ms since 1970: as a whole, or for one of its models. */
  coolsUntil: number;
  readonly coolingModels: Map<string, number>;
}

interface PooledVendor {
  readonly settings: VendorSettings;
  readonly accounts: readonly CoolingAccount[];
  /** The account whose turn it is. */
  next: number;
}

/** The vendors that are on, each by all of its keys, and which keys are better left alone for now. */
export class VendorPool {
  readonly #vendors = new Map<string, PooledVendor>();
  readonly #retired = new Map<Vendor, NodeJS.Timeout>();

  constructor(vendors: Readonly<Record<string, VendorSettings>>) {
    this.replace(vendors);
  }

  /** Names of the vendors. */
  names(): string[] {
    return [...this.#vendors.keys()];
  }

  /** The account with that id, or where the key is gone any of the vendor's; undefined where the vendor is not on. */
  find(name: string, id?: string): Account | undefined {
    const accounts = this.#vendors.get(name)?.accounts;
    return accounts?.find((account) => account.id === id) ?? accounts?.[0];
  }

  /** Whether the vendor has a key that is not cooling for that model. */
  isWarm(name: string, model: string): boolean {
    const accounts = this.#vendors.get(name)?.accounts ?? [];
    const now = Date.now();
    return accounts.some((account) => coolsUntil(account, model) <= now);
  }

  /** The next account in turn that is not cooling, or where all are the one that will soonest be done with it. */
  pick(name: string, model: string): Account | undefined {
    const pooled = this.#vendors.get(name);
    const [only] = pooled?.accounts ?? [];
    if (pooled === undefined || pooled.accounts.length === 1) return only;
    const now = Date.now();
    return inTurn(pooled).reduce((best, account) =>
      Math.max(now, coolsUntil(account, model)) < Math.max(now, coolsUntil(best, model)) ? account : best,
    );
  }

  /** The next account in turn that is not cooling and has none of these ids. */
  pickOther(name: string, model: string, ids: readonly string[]): Account | undefined {
    const pooled = this.#vendors.get(name);
    if (pooled === undefined || pooled.accounts.length === 1) return undefined;
    const now = Date.now();
    return inTurn(pooled).find((account) => coolsUntil(account, model) <= now && !ids.includes(account.id));
  }

  /** Leaves a key alone for a while: for one model, or for all of them. */
  coolDown({ vendor, id }: Account, ms: number, model?: string): void {
    const account = this.#vendors.get(vendor.name)?.accounts.find((each) => each.id === id);
    if (account === undefined) return;
    const now = Date.now();
    const until = now + ms;
    if (model === undefined) {
      account.coolsUntil = Math.max(account.coolsUntil, until);
      return;
    }
    for (const [each, end] of account.coolingModels) if (end <= now) account.coolingModels.delete(each);
    account.coolingModels.set(model, Math.max(account.coolingModels.get(model) ?? 0, until));
  }

  /** Remembers that the vendor refuses a key. @returns whether that is news */
  refuse({ vendor, id }: Account, refusal: AccountRefusal): boolean {
    const account = this.#vendors.get(vendor.name)?.accounts.find((each) => each.id === id);
    if (account === undefined) return false;
    const isNews = account.refusal === undefined;
    account.refusal = refusal;
    return isNews;
  }

  /** Forgets that, once the vendor has taken the key again. @param model what it was taken for; left out: as a whole */
  accept({ vendor, id }: Account, model?: string): void {
    const account = this.#vendors.get(vendor.name)?.accounts.find((each) => each.id === id);
    if (account === undefined || (account.refusal?.model ?? model) !== model) return;
    account.refusal = undefined;
  }

  /** The accounts of the vendors that want a key, by vendor. */
  keyed(): (readonly Account[])[] {
    return [...this.#vendors.values()].flatMap(({ settings, accounts }) => (settings.row.needsKey ? [accounts] : []));
  }

  /** Remembers what came of asking whether the vendor takes a key. */
  noteCheck({ vendor, id }: Account, outcome: KeyCheckOutcome): void {
    const account = this.#vendors.get(vendor.name)?.accounts.find((each) => each.id === id);
    if (account !== undefined) account.checked = outcome;
  }

  /** How many keys each vendor has, and how many of them are left alone for now, as a whole or for some model. */
  keyHealth(): KeyHealth[] {
    const now = Date.now();
    return [...this.#vendors].map(([vendor, { accounts }]) => ({
      ...refusalsOf(accounts),
      ...checksOf(accounts),
      vendor,
      keys: accounts.length,
      cooling: accounts.filter((each) => Math.max(each.coolsUntil, ...each.coolingModels.values()) > now).length,
    }));
  }

  /** Takes other vendors from now on. What runs with those that go may go on. */
  replace(vendors: Readonly<Record<string, VendorSettings>>): void {
    for (const [name, { settings, accounts }] of this.#vendors) {
      if (Object.hasOwn(vendors, name) && isDeepStrictEqual(vendors[name], settings)) continue;
      this.#vendors.delete(name);
      for (const { vendor } of accounts) this.#retire(vendor);
    }
    for (const [name, settings] of Object.entries(vendors)) {
      if (!this.#vendors.has(name))
        this.#vendors.set(name, { settings, accounts: openAccounts(name, settings), next: 0 });
    }
  }

  /** Closes all connections, those in use as well. */
  async close(): Promise<void> {
    for (const timer of this.#retired.values()) clearTimeout(timer);
    const accounts = [...this.#vendors.values()].flatMap((pooled) => pooled.accounts);
    await Promise.all(
      [...accounts.map(({ vendor }) => vendor), ...this.#retired.keys()].map((vendor) => vendor.close()),
    );
  }

  #retire(vendor: Vendor): void {
    const close = (): void => {
      this.#retired.delete(vendor);
      vendor.close().catch(() => undefined);
    };
    this.#retired.set(vendor, setTimeout(close, retiredMs).unref());
  }
}

function openAccounts(name: string, settings: VendorSettings): CoolingAccount[] {
  const media = new MediaGate(settings);
  return settings.apiKeys.map((apiKey) => ({
    vendor: createVendor(name, settings, apiKey),
    media,
    id: createHash('sha256').update(`sluice account ${apiKey}`).digest('hex').slice(0, 12),
    refusal: undefined,
    checked: undefined,
    coolsUntil: 0,
    coolingModels: new Map(),
  }));
}

/** How many of a vendor's keys it refuses, and what it said of the last. */
function refusalsOf(accounts: readonly CoolingAccount[]): Pick<KeyHealth, 'refused' | 'refusal'> {
  const refusals = accounts.flatMap(({ refusal }) => refusal ?? []);
  if (refusals.length === 0) return { refused: 0 };
  const { status, message, at } = refusals.reduce((last, each) => (each.at > last.at ? each : last));
  return { refused: refusals.length, refusal: { status, message, at } };
}

function checksOf(accounts: readonly CoolingAccount[]): Pick<KeyHealth, 'checked'> {
  const counts: Partial<Record<KeyCheckOutcome, number>> = {};
  for (const { checked } of accounts) if (checked !== undefined) counts[checked] = (counts[checked] ?? 0) + 1;
  return Object.keys(counts).length === 0 ? {} : { checked: counts };
}

/** A vendor's accounts, the one whose turn it is first. Another one's turn is next. */
function inTurn(pooled: PooledVendor): readonly CoolingAccount[] {
  const { accounts, next } = pooled;
  pooled.next = (next + 1) % accounts.length;
  return [...accounts.slice(next), ...accounts.slice(0, next)];
}

function coolsUntil(account: CoolingAccount, model: string): number {
  return Math.max(account.coolsUntil, account.coolingModels.get(model) ?? 0);
}

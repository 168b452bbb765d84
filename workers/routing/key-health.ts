import type { KeyCheckOutcome, KeyHealth } from '../../shared/queue/worker-registry.ts';
import type { AccountRefusal, CoolingAccount } from './account.ts';

/** How long a refusal for one model counts, in ms: calls of the model repeat it, and without calls nothing else would end it. */
const modelRefusalMs = 1_800_000;

/** How many keys a vendor has, and how many of them are cooling down, altogether or for some model. */
export function keyHealthOf(vendor: string, accounts: readonly CoolingAccount[]): KeyHealth {
  const now = performance.now();
  return {
    ...refusalsOf(accounts),
    ...checksOf(accounts),
    vendor,
    keys: accounts.length,
    cooling: accounts.filter((each) => isCooling(each, now)).length,
  };
}

function isCooling({ coolsUntil: until, coolingModels, limitedModels }: CoolingAccount, now: number): boolean {
  return Math.max(until, ...coolingModels.values(), ...limitedModels.values()) > now;
}

/** How the vendor refuses the key now. */
export function refusalOf({ refusal, refusedAt }: CoolingAccount): AccountRefusal | undefined {
  return refusal?.model !== undefined && performance.now() - refusedAt > modelRefusalMs ? undefined : refusal;
}

/** How many of a vendor's keys it refuses, with the latest refusal. */
function refusalsOf(accounts: readonly CoolingAccount[]): Pick<KeyHealth, 'refused' | 'refusal'> {
  const refusals = accounts.flatMap((account) => refusalOf(account) ?? []);
  if (refusals.length === 0) return { refused: 0 };
  const { status, message, at } = refusals.reduce((last, each) => (each.at > last.at ? each : last));
  return { refused: refusals.length, refusal: { status, message, at } };
}

function checksOf(accounts: readonly CoolingAccount[]): Pick<KeyHealth, 'checked'> {
  const counts: Partial<Record<KeyCheckOutcome, number>> = {};
  for (const { checked } of accounts) if (checked !== undefined) counts[checked] = (counts[checked] ?? 0) + 1;
  return Object.keys(counts).length === 0 ? {} : { checked: counts };
}

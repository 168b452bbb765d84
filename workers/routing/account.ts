import type { KeyCheckOutcome, KeyRefusal } from '../../shared/queue/worker-registry.ts';
import type { Vendor } from '../vendors/vendor.ts';
import type { MediaGate } from './media-gate.ts';

/** A vendor as reached with one of its keys. */
export interface Account {
  readonly vendor: Vendor;
  /** Checks the links of its requests. */
  readonly media: MediaGate | undefined;
  /** A name for the key that does not reveal it: other keys may not see what this one has started. */
  readonly id: string;
  /** How the vendor has refused the key, if it has not accepted it since. */
  readonly refusal: AccountRefusal | undefined;
}

/** An account by its names. */
export interface NamedAccount {
  readonly vendor: { readonly name: string };
  readonly id: string;
}

/** How a vendor has refused a key: for the named model, or altogether. */
export interface AccountRefusal extends KeyRefusal {
  readonly model: string | undefined;
}

/** An account, and what was found of its key. */
export interface CoolingAccount extends Account {
  refusal: AccountRefusal | undefined;
  /** When that was, in ms of `performance.now()`. */
  refusedAt: number;
  checked: KeyCheckOutcome | undefined;
  /** Until when the key is cooling down for all models, in ms of `performance.now()`; per model in `coolingModels`. */
  coolsUntil: number;
  readonly coolingModels: Map<string, number>;
  /** Models that the vendor limits for the key, and until when, in ms of `performance.now()`. */
  readonly limitedModels: Map<string, number>;
}

import type { KeyRefusal } from '../../shared/queue/worker-registry.ts';
import type { MediaGate } from '../run/media-gate.ts';
import type { Vendor } from '../vendors/vendor.ts';

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

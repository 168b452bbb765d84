import type { Caller } from '../auth/caller.ts';

/** How many keys are remembered. */
const maxKeys = 10_000;

/**
 * Whose admission asks what a job may cost: keys with a budget, and those of limited accounts, which is known once it has
 * asked. A guess only, that saves the others the reckoning and these the second asking.
 */
export class PayingKeys {
  readonly #ids = new Set<string>();

  /** Notes that what the caller's job may cost was asked for. Keys come and go: the few that are in use are noted again. */
  note({ apiKeyId }: Caller): void {
    if (this.#ids.size >= maxKeys) this.#ids.clear();
    this.#ids.add(apiKeyId);
  }

  has({ apiKeyId, budget }: Caller): boolean {
    return budget !== undefined || this.#ids.has(apiKeyId);
  }
}

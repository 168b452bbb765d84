import type { Caller } from '../auth/caller.ts';

/** Maximum number of remembered keys. */
const maxKeys = 10_000;

/**
 * Keys whose admission needs an estimate of the cost: those with a budget, and those of limited accounts, which is known
 * after the first admission. Only a hint, which saves the others the estimate and these the retry.
 */
export class PayingKeys {
  readonly #ids = new Set<string>();

  /** Notes that the caller's hold was needed. The set may be cleared, as active keys are noted again. */
  note({ apiKeyId }: Caller): void {
    if (this.#ids.size >= maxKeys) this.#ids.clear();
    this.#ids.add(apiKeyId);
  }

  has({ apiKeyId, budget }: Caller): boolean {
    return budget !== undefined || this.#ids.has(apiKeyId);
  }
}

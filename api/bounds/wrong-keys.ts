import type { Database } from '../../shared/database/database.ts';
import { ApiError } from '../../shared/errors.ts';
import { makeRoom } from '../../shared/runtime/collections.ts';

/** Networks that are remembered. The least recently used one is evicted. */
const maxNetworks = 10_000;
const windowMs = 60_000;
/** Maximum age of the list of valid keys, and its maximum size. */
const listMs = 1000;
const maxListed = 100_000;
/** Minimum age of the list, as a multiple of the time to read it, which bounds the load of reading. */
const restFactor = 20;

/** Recent attempts of a network. The level drains evenly over a minute. */
interface Tries {
  level: number;
  /** By the monotonic clock: a host's own may be put back by an hour. */
  at: number;
}

/**
 * Bounds look-ups of unknown API keys per network, so that guessing does not keep the database from others. A valid key is
 * never refused for wrong ones from the same network: a list of valid keys, read while somebody guesses, covers keys that
 * are new to this process.
 */
export class WrongKeys {
  readonly #db: Database;
  readonly #perMinute: number;
  readonly #networks = new Map<string, Tries>();
  #valid: Promise<ReadonlySet<string>> = Promise.resolve(new Set<string>());
  #listAgainAt = 0;

  constructor(db: Database, perMinute: number) {
    this.#db = db;
    this.#perMinute = perMinute;
  }

  /**
   * Called before an unknown key is looked up.
   * @param hash of the key
   * @throws ApiError 429 when the network has tried too many wrong keys and this key is not a valid one.
   */
  async assertMayTry(network: string, hash: string): Promise<void> {
    const level = this.#levelOf(network);
    if (level + 1 <= this.#perMinute || (await this.#listed()).has(hash)) return;
    throw new ApiError(
      'rate_limit_exceeded',
      'Too many wrong API keys were tried from this address. Try again later.',
      {
        reason: 'wrong_keys',
        retryAfterMs: Math.max(1000, ((level - this.#perMinute + 1) * windowMs) / this.#perMinute),
      },
    );
  }

  note(network: string): void {
    const level = this.#levelOf(network) + 1;
    this.#networks.delete(network);
    makeRoom(this.#networks, maxNetworks);
    this.#networks.set(network, { level, at: performance.now() });
  }

  #levelOf(network: string): number {
    const tries = this.#networks.get(network);
    if (tries === undefined) return 0;
    return Math.max(0, tries.level - ((performance.now() - tries.at) * this.#perMinute) / windowMs);
  }

  #listed(): Promise<ReadonlySet<string>> {
    const now = performance.now();
    if (now < this.#listAgainAt) return this.#valid;
    this.#listAgainAt = Number.POSITIVE_INFINITY;
    const old = this.#valid;
    this.#valid = this.#list()
      .catch(() => old)
      .finally(() => {
        this.#listAgainAt = now + Math.max(listMs, restFactor * (performance.now() - now));
      });
    return this.#valid;
  }

  async #list(): Promise<ReadonlySet<string>> {
    const rows = await this.#db
      .selectFrom('api_keys')
      .select('hash')
      .where('revoked_at', 'is', null)
      .where((is) => is.or([is('expires_at', 'is', null), is('expires_at', '>', Date.now())]))
      .orderBy('created_at', 'desc')
      .limit(maxListed)
      .execute();
    return new Set(rows.map(({ hash }) => hash));
  }
}

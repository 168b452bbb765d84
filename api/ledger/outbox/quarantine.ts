import { quarantineKey } from '../../../shared/redis/keys.ts';
import type { RedisClient } from '../../../shared/redis/redis.ts';
import type { OutboxEntry } from './outbox-group.ts';

/** Maximum number of records. Beyond it the oldest are dropped. */
const maxRecords = 10_000;

/** Stores records that the database refused in Redis, for an operator. Their charges stand. */
export class Quarantine {
  readonly #redis: RedisClient;
  readonly #onDropped: (records: number) => void;

  /** @param onDropped called with the number of records that have made room for newer ones, and are gone */
  constructor(redis: RedisClient, onDropped: (records: number) => void = () => undefined) {
    this.#redis = redis;
    this.#onDropped = onDropped;
  }

  /** Adds records. Called before they leave their outbox; a crash in between stores them twice. */
  async add(entries: readonly Pick<OutboxEntry, 'text' | 'charge'>[]): Promise<void> {
    if (entries.length === 0) return;
    const texts = entries.map(({ text = '', charge }) => JSON.stringify({ record: text, charge, at: Date.now() }));
    const length = await this.#redis.rpush(quarantineKey, ...texts);
    await this.#redis.ltrim(quarantineKey, -maxRecords, -1);
    if (length > maxRecords) this.#onDropped(length - maxRecords);
  }

  /** Number of stored records. */
  async size(): Promise<number> {
    return await this.#redis.llen(quarantineKey);
  }
}

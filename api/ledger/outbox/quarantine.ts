import { quarantineKey } from '../../../shared/redis/keys.ts';
import type { RedisClient } from '../../../shared/redis/redis.ts';
import type { OutboxEntry } from './outbox-group.ts';

/** Records kept aside; beyond that the oldest go. */
const maxRecords = 10_000;

/** Records that the database has refused, kept in Redis for an operator to look at. Their charges stand. */
export class Quarantine {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** Keeps records; to be called before they leave their outbox. A crash in between keeps them twice. */
  async add(entries: readonly Pick<OutboxEntry, 'text' | 'charge'>[]): Promise<void> {
    if (entries.length === 0) return;
    const texts = entries.map(({ text = '', charge }) => JSON.stringify({ record: text, charge, at: Date.now() }));
    await this.#redis.rpush(quarantineKey, ...texts);
    await this.#redis.ltrim(quarantineKey, -maxRecords, -1);
  }

  /** How many are kept. */
  async size(): Promise<number> {
    return await this.#redis.llen(quarantineKey);
  }
}

import { chargeField, lateField, recordField } from '../../../shared/jobs/settlement/outbox.ts';
import { accountKeys } from '../../../shared/redis/keys.ts';
import type { RedisClient } from '../../../shared/redis/redis.ts';
import { loadScript } from '../../../shared/redis/script.ts';
import { groupBy } from '../../../shared/runtime/group-by.ts';

/** All api processes read the outboxes as one group: each entry goes to one of them. */
const group = 'ledger';
/** Entries of one outbox read at a time. */
const batch = 200;
/** Entries that their consumer has not acknowledged for this long are taken over. */
const takeOverMs = 30_000;
/** A consumer that has been idle for this long belongs to a dead process. */
const forgetMs = 600_000;

const forgetScript = loadScript<number>(new URL('./forget-consumers.lua', import.meta.url));

/** An entry of an outbox: a job's record on its way into the database. */
export interface OutboxEntry {
  /** Key of the outbox, and the entry's id in it. */
  readonly key: string;
  readonly id: string;
  /** The record's text. Undefined for an entry that was deleted but not acknowledged. */
  readonly text: string | undefined;
  /** The job's charge, if the entry contains it. */
  readonly charge: string | undefined;
  /** The entry's `lateField`. */
  readonly late: string | undefined;
}

/** The entries of one read. */
export interface OutboxBatch {
  readonly entries: OutboxEntry[];
  /** Whether there may be more. */
  readonly isFull: boolean;
}

type RawEntry = [id: string, fields: string[] | null];

export interface OutboxGroupOptions {
  readonly redis: RedisClient;
  readonly isCluster: boolean;
  /** This consumer's name, unique per process. */
  readonly name: string;
  /** Overrides of the defaults (30 s, 10 min), for tests. */
  readonly takeOverMs?: number;
  readonly forgetMs?: number;
}

/** One member of the consumer group of all outboxes. On a Cluster each outbox needs separate commands. */
export class OutboxGroup {
  readonly #redis: RedisClient;
  readonly #isCluster: boolean;
  readonly #name: string;
  readonly #takeOverMs: number;
  readonly #forgetMs: number;
  readonly #keys = accountKeys.allOutboxes();
  /** The cursor of the next takeover, by outbox. */
  readonly #claimFrom = new Map<string, string>();

  constructor(options: OutboxGroupOptions) {
    this.#redis = options.redis;
    this.#isCluster = options.isCluster;
    this.#name = options.name;
    this.#takeOverMs = options.takeOverMs ?? takeOverMs;
    this.#forgetMs = options.forgetMs ?? forgetMs;
  }

  /** Reads entries that no member has. If Redis lacks the group (new, or flushed), it is created first. */
  async read(): Promise<OutboxBatch> {
    const calls = this.#isCluster ? this.#keys.map((key) => [key]) : [this.#keys];
    let isGroupMissing = false;
    const replies = await Promise.all(
      calls.map((keys) =>
        this.#readNew(keys).catch((error: Error) => {
          if (!error.message.startsWith('NOGROUP')) throw error;
          isGroupMissing = true;
          return [];
        }),
      ),
    );
    if (isGroupMissing) await this.#create();
    return toBatch(replies.flat());
  }

  /** Takes over entries that their consumers have abandoned: dead ones, and this one after a failure. */
  async takeOver(): Promise<OutboxBatch> {
    return toBatch(await Promise.all(this.#keys.map(async (key) => [key, await this.#claim(key)] as const)));
  }

  /** Continues from the last call's cursor, so that entries that stay pending do not hide those behind them. */
  async #claim(key: string): Promise<RawEntry[]> {
    const from = this.#claimFrom.get(key) ?? '0-0';
    const reply = await this.#redis.xautoclaim(key, group, this.#name, this.#takeOverMs, from, 'COUNT', batch);
    const [next, claimed] = reply as [string, (RawEntry | null)[]];
    this.#claimFrom.set(key, next);
    const entries = claimed.filter((entry) => entry !== null);
    // Redis before 7.0 does not report entries that were deleted but not acknowledged, and keeps them.
    if (entries.length < claimed.length) await this.#acknowledgeDeleted(key);
    return entries;
  }

  async #acknowledgeDeleted(key: string): Promise<void> {
    const pending = (await this.#redis.xpending(key, group, '-', '+', batch, this.#name)) as [id: string][];
    const found = await Promise.all(pending.map(([id]) => this.#redis.xrange(key, id, id)));
    const deleted = pending.flatMap(([id], index) => (found[index]?.length === 0 ? [id] : []));
    if (deleted.length > 0) await this.#redis.xack(key, group, ...deleted);
  }

  /**
   * Removes written entries. They are deleted first: a deleted entry that is still pending goes with the next takeover, but
   * an acknowledged one that is not deleted would stay forever.
   */
  async acknowledge(entries: readonly OutboxEntry[]): Promise<void> {
    await Promise.all(
      [...groupBy(entries, ({ key }) => key)].flatMap(([key, left]) => {
        const ids = left.map(({ id }) => id);
        return [this.#redis.xdel(key, ...ids), this.#redis.xack(key, group, ...ids)];
      }),
    );
  }

  /** Deletes dead members without pending entries. */
  async forgetDead(): Promise<void> {
    await Promise.all(this.#keys.map((key) => forgetScript(this.#redis, [key], [group, this.#forgetMs, ''])));
  }

  /** Leaves the group. Pending entries keep the name until they are taken over. */
  async leave(): Promise<void> {
    await Promise.all(this.#keys.map((key) => forgetScript(this.#redis, [key], [group, this.#forgetMs, this.#name])));
  }

  async #readNew(keys: readonly string[]): Promise<(readonly [key: string, entries: RawEntry[]])[]> {
    const unread = keys.map(() => '>');
    const reply = await this.#redis.xreadgroup(
      'GROUP',
      group,
      this.#name,
      'COUNT',
      batch,
      'STREAMS',
      ...keys,
      ...unread,
    );
    return (reply ?? []) as [string, RawEntry[]][];
  }

  async #create(): Promise<void> {
    await Promise.all(
      this.#keys.map((key) =>
        // From the first entry: records may be older than the group.
        this.#redis.xgroup('CREATE', key, group, '0', 'MKSTREAM').catch((error: Error) => {
          if (!error.message.startsWith('BUSYGROUP')) throw error;
        }),
      ),
    );
  }
}

function toBatch(replies: readonly (readonly [key: string, entries: readonly RawEntry[]])[]): OutboxBatch {
  return {
    entries: replies.flatMap(([key, entries]) =>
      entries.map((entry) => ({
        key,
        id: entry[0],
        text: fieldOf(entry, recordField),
        charge: fieldOf(entry, chargeField),
        late: fieldOf(entry, lateField),
      })),
    ),
    isFull: replies.some(([, entries]) => entries.length >= batch),
  };
}

function fieldOf([, fields]: RawEntry, name: string): string | undefined {
  // Names and values alternate, and a value may look like a name.
  for (let index = 0; index < (fields?.length ?? 0); index += 2) if (fields?.[index] === name) return fields[index + 1];
  return undefined;
}

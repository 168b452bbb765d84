import { chargeField, lateField, recordField } from '../../../shared/jobs/settlement/outbox.ts';
import { accountKeys } from '../../../shared/redis/keys.ts';
import type { RedisClient } from '../../../shared/redis/redis.ts';
import { loadScript } from '../../../shared/redis/script.ts';
import { groupBy } from '../../../shared/runtime/group-by.ts';

/** All api processes read the outboxes as one group: each entry goes to one of them. */
const group = 'ledger';
/** Entries of one outbox read at a time. */
const batch = 200;
/** An entry that its consumer has not acknowledged for so long is taken over. */
const takeOverMs = 30_000;
/** A name that has not been used for so long is a dead process's. */
const forgetMs = 600_000;

const forgetScript = loadScript<number>(new URL('./forget-consumers.lua', import.meta.url));

/** An entry of an outbox: a job's record on its way into the database. */
export interface OutboxEntry {
  /** Key of the outbox, and the entry's id in it. */
  readonly key: string;
  readonly id: string;
  /** The record's text; undefined for an entry that was deleted and only not acknowledged. */
  readonly text: string | undefined;
  /** What was charged for the job, as the entry says it; undefined where it says nothing. */
  readonly charge: string | undefined;
  /** What it says in its `lateField`. */
  readonly late: string | undefined;
}

/** Entries that one reading gave. */
export interface OutboxBatch {
  readonly entries: OutboxEntry[];
  /** There may be more where these came from. */
  readonly isFull: boolean;
}

type RawEntry = [id: string, fields: string[] | null];

export interface OutboxGroupOptions {
  readonly redis: RedisClient;
  readonly isCluster: boolean;
  /** This consumer's name, unique per process. */
  readonly name: string;
  /** Other times than the usual ones (30 s, 10 min), for tests. */
  readonly takeOverMs?: number;
  readonly forgetMs?: number;
}

/** The consumer group on all outboxes, as one of its members sees it. On a Cluster each outbox takes commands of its own. */
export class OutboxGroup {
  readonly #redis: RedisClient;
  readonly #isCluster: boolean;
  readonly #name: string;
  readonly #takeOverMs: number;
  readonly #forgetMs: number;
  readonly #keys = accountKeys.allOutboxes();
  /** Where the next taking over of an outbox begins. */
  readonly #claimFrom = new Map<string, string>();

  constructor(options: OutboxGroupOptions) {
    this.#redis = options.redis;
    this.#isCluster = options.isCluster;
    this.#name = options.name;
    this.#takeOverMs = options.takeOverMs ?? takeOverMs;
    this.#forgetMs = options.forgetMs ?? forgetMs;
  }

  /** Reads entries that no member has. A Redis that does not know the group (new, or emptied) is told of it first. */
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

  /** Takes entries over that their consumers have left lying: dead ones', and one's own after a failure. */
  async takeOver(): Promise<OutboxBatch> {
    return toBatch(await Promise.all(this.#keys.map(async (key) => [key, await this.#claim(key)] as const)));
  }

  /** Goes on where the last call ended: entries that stay pending must not keep those behind them from being seen. */
  async #claim(key: string): Promise<RawEntry[]> {
    const from = this.#claimFrom.get(key) ?? '0-0';
    const reply = await this.#redis.xautoclaim(key, group, this.#name, this.#takeOverMs, from, 'COUNT', batch);
    const [next, claimed] = reply as [string, (RawEntry | null)[]];
    this.#claimFrom.set(key, next);
    const entries = claimed.filter((entry) => entry !== null);
    // Redis before 7.0 has nothing to say of entries that were deleted and not acknowledged, and keeps them.
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
   * Takes written entries out. Deleting comes first: what is deleted and still pending goes with the next taking over,
   * but what is acknowledged and still there would stay for good.
   */
  async acknowledge(entries: readonly OutboxEntry[]): Promise<void> {
    await Promise.all(
      [...groupBy(entries, ({ key }) => key)].flatMap(([key, left]) => {
        const ids = left.map(({ id }) => id);
        return [this.#redis.xdel(key, ...ids), this.#redis.xack(key, group, ...ids)];
      }),
    );
  }

  /** Forgets the names of dead members that have nothing pending. */
  async forgetDead(): Promise<void> {
    await Promise.all(this.#keys.map((key) => forgetScript(this.#redis, [key], [group, this.#forgetMs, ''])));
  }

  /** Leaves the group. What is still pending keeps the name, until it is taken over. */
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
        // From the first entry on: records may have come before the group.
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
  // Names and values take turns, and a value may look like a name.
  for (let index = 0; index < (fields?.length ?? 0); index += 2) if (fields?.[index] === name) return fields[index + 1];
  return undefined;
}

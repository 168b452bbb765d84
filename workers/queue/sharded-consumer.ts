import type { Capability } from '../../shared/capabilities/capability.ts';
import { assignedShards, removeConsumer, reportConsumer } from '../../shared/queue/queue-consumers.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';
import type { ClaimSlots } from './claim-slots.ts';
import type { Consumer } from './consumer.ts';

/** Interval of reports, and of assignments of shards. */
const everyMs = 5000;
/** How soon the first report is retried: until it is made, no shard is served. */
const retryMs = 500;
/** How long a closing consumer waits for Redis, which may be away: the other workers then miss its report. */
const closeMs = 2000;

export interface ShardedConsumerOptions {
  readonly capability: Capability;
  readonly redis: RedisClient;
  readonly workerId: string;
  /** Number of shards, which may grow. */
  readonly shards: { readonly count: number };
  readonly slots: ClaimSlots;
  /** Starts to consume a shard. */
  readonly open: (shard: number) => Consumer;
  readonly log: Logger;
}

/**
 * Consumes the shards of a capability's queue that are assigned to this worker. Each shard is served by two workers at least, where
 * there are two. A shard that another worker serves from now on is left once the jobs claimed from it have finished; nothing is
 * handed over, and for a while three may serve it, or the one that was there. A queue without shards needs no report.
 */
export class ShardedConsumer implements Consumer {
  readonly #options: ShardedConsumerOptions;
  readonly #consumers = new Map<number, Consumer>();
  /** Shards that are being left. */
  readonly #leaving = new Map<number, Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #assigning: Promise<void> | undefined;
  #isClosed = false;

  constructor(options: ShardedConsumerOptions) {
    this.#options = options;
    if (options.shards.count === 1) this.#open(0);
    this.#assignSoon(options.shards.count === 1 ? everyMs : 0);
  }

  /** Stops claiming, and resolves when the running jobs have finished. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    const { redis, capability, workerId, log } = this.#options;
    // At once: what is requeued from now on must not be claimed here again. A look under way opens no more of them.
    const closed = [...this.#consumers.values()].map((consumer) => consumer.close());
    // The others serve its shards at their next look, unless one of its own that is under way reports it again.
    const removed = Promise.resolve(this.#assigning)
      .then(() => removeConsumer(redis, capability, workerId))
      .catch((error) => log.warn({ err: error, capability }, 'removing a worker from those of its queue failed'));
    await Promise.all([...closed, this.#options.shards.count > 1 && withTimeout(removed, closeMs)]);
    // Such a look may have left some meanwhile.
    await Promise.all(this.#leaving.values());
  }

  #assignSoon(ms: number): void {
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => {
      this.#assigning = this.#assign().then(
        () => this.#assignSoon(everyMs),
        (error) => {
          const { log, capability } = this.#options;
          log.warn({ err: error, capability }, 'finding the shards of a queue to serve failed');
          this.#assignSoon(this.#consumers.size === 0 ? retryMs : everyMs);
        },
      );
    }, ms);
  }

  async #assign(): Promise<void> {
    const { redis, capability, workerId, shards } = this.#options;
    if (shards.count === 1) return;
    const workers = await reportConsumer(redis, capability, workerId);
    if (this.#isClosed) return;
    const assigned = assignedShards(workers, workerId, shards.count);
    for (const shard of assigned) {
      // One that is being left is served again once it has been.
      if (!this.#consumers.has(shard) && !this.#leaving.has(shard)) this.#open(shard);
    }
    for (const [shard, consumer] of this.#consumers) if (!assigned.has(shard)) this.#leave(shard, consumer);
  }

  #open(shard: number): void {
    this.#consumers.set(shard, this.#options.open(shard));
    this.#share();
  }

  #share(): void {
    const { size } = this.#consumers;
    this.#options.slots.isShared = size > 1;
    for (const consumer of this.#consumers.values()) consumer.share?.(size);
  }

  #leave(shard: number, consumer: Consumer): void {
    this.#consumers.delete(shard);
    this.#share();
    const left = consumer
      .close()
      .catch((error) => this.#options.log.warn({ err: error, shard }, 'leaving a shard of a queue failed'))
      .finally(() => this.#leaving.delete(shard));
    this.#leaving.set(shard, left);
  }
}

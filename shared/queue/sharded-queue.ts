import { type Capability, capabilities } from '../capabilities/capability.ts';
import type { JobIdentity } from '../jobs/job-state.ts';
import { shardOf } from '../jobs/job-state.ts';
import type { RedisClient } from '../redis/redis.ts';
import type { Closers } from '../runtime/closers.ts';
import { CapabilityQueue } from './queue.ts';
import { type QueueDepth, type QueueProgress, type QueueReader, sumOfLines } from './reading/queue-reader.ts';

/** The producer's side of one capability's queue with all its shards. What is read of it is the sum over them. */
export class ShardedQueue {
  readonly capability: Capability;
  readonly #redis: RedisClient;
  readonly #shards: { readonly count: number };
  readonly #queues: CapabilityQueue[];

  /** @param shards how many there are, which may grow */
  constructor(capability: Capability, redis: RedisClient, shards: { readonly count: number } = { count: 1 }) {
    this.capability = capability;
    this.#redis = redis;
    this.#shards = shards;
    this.#queues = [new CapabilityQueue(capability, redis)];
  }

  /** The shard that a job belongs to. */
  of(job: Pick<JobIdentity, 'id' | 'shards'>): CapabilityQueue {
    return this.shard(shardOf(job));
  }

  shard(number: number): CapabilityQueue {
    let queue = this.#queues[number];
    if (queue === undefined) {
      queue = new CapabilityQueue(this.capability, this.#redis, number);
      this.#queues[number] = queue;
    }
    return queue;
  }

  /** All shards that may have jobs. */
  get all(): CapabilityQueue[] {
    return Array.from({ length: this.#shards.count }, (_, number) => this.shard(number));
  }

  /** Whether a job of which only the id is known is in the queue. */
  async has(jobId: string): Promise<boolean> {
    return (await Promise.all(this.all.map((queue) => queue.has(jobId)))).includes(true);
  }

  /** Removes a waiting job of which only the id is known. @returns false if a worker has already claimed it */
  async remove(jobId: string): Promise<boolean> {
    return (await Promise.all(this.all.map((queue) => queue.remove(jobId)))).includes(true);
  }

  async waiting(): Promise<number> {
    return await this.#sum((reader) => reader.waiting());
  }

  async active(): Promise<number> {
    return await this.#sum((reader) => reader.active());
  }

  async delayed(): Promise<number> {
    return await this.#sum((reader) => reader.delayed());
  }

  async parked(): Promise<number> {
    return await this.#sum((reader) => reader.parked());
  }

  async flex(): Promise<number> {
    return await this.#sum((reader) => reader.flex());
  }

  async high(): Promise<number> {
    return await this.#sum((reader) => reader.high());
  }

  async prioritized(): Promise<number> {
    return await this.#sum((reader) => reader.prioritized());
  }

  async depth(): Promise<QueueDepth> {
    const depths = await Promise.all(this.all.map((queue) => queue.reader.depth()));
    return {
      waiting: depths.reduce((sum, { waiting }) => sum + waiting, 0),
      active: depths.reduce((sum, { active }) => sum + active, 0),
      oldestWaitMs: Math.max(...depths.map(({ oldestWaitMs }) => oldestWaitMs)),
    };
  }

  async progress(): Promise<QueueProgress> {
    const all = await Promise.all(this.all.map((queue) => queue.reader.progress()));
    return {
      claimed: all.reduce((sum, { claimed }) => sum + claimed, 0),
      lines: sumOfLines(all.map(({ lines }) => lines)),
      highLines: sumOfLines(all.map(({ highLines }) => highLines)),
      beside: sumOfLines(all.map(({ beside }) => beside)),
    };
  }

  /** Until a new job that had to wait for a route would start, in ms; see `QueueReader`. All shards take of the route's capacity. */
  async lineMs(route: string, account: string, isHigh: boolean): Promise<number> {
    const lines = await Promise.all(this.all.map(({ reader }) => reader.line(route, account, isHigh)));
    return Math.max(...lines.map(({ nextMs }) => nextMs)) + lines.reduce((sum, { aheadMs }) => sum + aheadMs, 0);
  }

  async close(): Promise<void> {
    await Promise.all(this.#queues.map((queue) => queue?.close()));
  }

  async #sum(read: (reader: QueueReader) => Promise<number>): Promise<number> {
    const counts = await Promise.all(this.all.map(({ reader }) => read(reader)));
    return counts.reduce((sum, count) => sum + count, 0);
  }
}

/** Opens the queues of all capabilities. */
export function openQueues(
  redis: RedisClient,
  shards: { readonly count: number },
  closers: Closers,
): ReadonlyMap<Capability, ShardedQueue> {
  return new Map(
    capabilities.map((capability) => [capability, closers.use(new ShardedQueue(capability, redis, shards))]),
  );
}

/** The shard that a job belongs to, among these queues. */
export function queueOf(
  queues: ReadonlyMap<Capability, ShardedQueue>,
): (job: Pick<JobIdentity, 'id' | 'capability' | 'shards'>) => CapabilityQueue {
  return (job) => (queues.get(job.capability) as ShardedQueue).of(job);
}

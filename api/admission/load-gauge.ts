import { type Capability, capabilities } from '../../shared/capabilities/capability.ts';
import type { CapabilityQueue } from '../../shared/queue.ts';
import { memoryUse, type RedisClient } from '../../shared/redis.ts';
import type { Shedding } from './admit.ts';

/** How old the queue length may be that admission looks at. */
const queueAgeMs = 100;
/** How old the memory figure may be. */
const memoryAgeMs = 1000;
/** Above this share of Redis's memory new work is shed: at the limit not even workers can fetch. */
const memoryLimit = 0.7;

/**
 * What admission knows of the load: queue lengths and Redis's memory. Figures are cached, because they lie under other
 * hash tags than the account's and cost a round trip; what this process admits in between is added to them.
 */
export class LoadGauge {
  readonly #redis: RedisClient;
  readonly #queues: ReadonlyMap<Capability, CapabilityQueue>;
  readonly #queueLimit: number;
  readonly #waiting = new Map<Capability, number>(capabilities.map((capability) => [capability, 0]));
  #memory = 0;
  #queuesReadAt = 0;
  #memoryReadAt = 0;

  constructor(redis: RedisClient, queues: ReadonlyMap<Capability, CapabilityQueue>, queueLimit: number) {
    this.#redis = redis;
    this.#queues = queues;
    this.#queueLimit = queueLimit;
  }

  /** Why new work of this capability must be refused now, if it must. Refreshes the figures behind the caller's back. */
  shedding(capability: Capability): Shedding | undefined {
    const now = Date.now();
    if (now - this.#queuesReadAt > queueAgeMs) {
      this.#queuesReadAt = now;
      this.#readQueues().catch(() => undefined);
    }
    if (now - this.#memoryReadAt > memoryAgeMs) {
      this.#memoryReadAt = now;
      this.#readMemory().catch(() => undefined);
    }
    if (this.#memory > memoryLimit) return 'shed';
    return (this.#waiting.get(capability) ?? 0) >= this.#queueLimit ? 'queue_full' : undefined;
  }

  /** Counts a job that this process has just enqueued. */
  added(capability: Capability): void {
    this.#waiting.set(capability, (this.#waiting.get(capability) ?? 0) + 1);
  }

  /** Reads the figures once; at start, so that the first requests are judged by real ones. */
  async refresh(): Promise<void> {
    await Promise.all([this.#readQueues(), this.#readMemory()]);
  }

  async #readQueues(): Promise<void> {
    const read = [...this.#queues].map(async ([capability, queue]) => {
      this.#waiting.set(capability, await queue.waiting());
    });
    await Promise.all(read);
  }

  async #readMemory(): Promise<void> {
    this.#memory = await memoryUse(this.#redis);
  }
}

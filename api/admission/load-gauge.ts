import { type Capability, capabilities } from '../../shared/capabilities/capability.ts';
import type { CapabilityQueue } from '../../shared/queue/queue.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import { memoryUse, type RedisMemory } from '../../shared/redis/redis-memory.ts';
import type { Shedding } from './admit.ts';

/** Maximum age of the queue length for admission. */
const queueAgeMs = 100;
/** Maximum age for refusing a request: jobs that have left the queue since are not known here. */
const refusalAgeMs = 20;
/** Maximum age of the memory figure, and of an idle process's queue lengths. */
const memoryAgeMs = 1000;
/** Share of Redis's memory above which new work is shed: at the limit not even workers can fetch. */
const memoryLimit = 0.7;

/** Waiting time of a job above which its queue does not flow: the usual hand-over takes this long. */
const flowingMs = 25;

/** The progress of a queue. */
export interface QueueClock {
  /** Whether jobs are claimed as soon as they are queued. */
  readonly flows: boolean;
  /** The highest priority that workers have claimed; see `FairnessClock`. */
  readonly virtualTime: number;
}

const start: QueueClock = { flows: true, virtualTime: 0 };

/**
 * The load as known to admission: queue lengths and Redis's memory. Figures are cached, because their hash tags differ from
 * the account's and reading costs a round trip; jobs that this process admits in between are added.
 */
export class LoadGauge {
  readonly #redis: RedisClient;
  readonly #queues: ReadonlyMap<Capability, CapabilityQueue>;
  readonly #queueLimit: number;
  readonly #waiting = new Map<Capability, number>(capabilities.map((capability) => [capability, 0]));
  readonly #active = new Map<Capability, number>();
  readonly #clocks = new Map<Capability, QueueClock>();
  readonly #timer: NodeJS.Timeout;
  #memory: RedisMemory = { share: 0, limit: 0 };
  #queuesReadAt = 0;
  #memoryReadAt = 0;
  /** Reads in progress: while Redis does not respond, no further ones start. */
  #readingQueues: Promise<void> | undefined;
  #readingMemory: Promise<void> | undefined;

  constructor(redis: RedisClient, queues: ReadonlyMap<Capability, CapabilityQueue>, queueLimit: number) {
    this.#redis = redis;
    this.#queues = queues;
    this.#queueLimit = queueLimit;
    // Without it an idle process would judge its next burst by stale figures.
    this.#timer = setInterval(() => this.#refreshOld(), memoryAgeMs);
    this.#timer.unref();
  }

  /** Why new work of this capability must be refused now, if it must. Refreshes the figures in the background. */
  shedding(capability: Capability): Shedding | undefined {
    this.#refreshOld();
    if (this.#memory.share > memoryLimit) return 'shed';
    return (this.#waiting.get(capability) ?? 0) >= this.#queueLimit ? 'queue_full' : undefined;
  }

  /** Reads the queues again unless that was just done, for a request whose queue seems full. */
  async refreshQueues(): Promise<void> {
    this.#refreshQueues(refusalAgeMs);
    await this.#readingQueues;
  }

  /** Waiting jobs, and active ones if any wait, as last known. */
  fill(capability: Capability): { readonly waiting: number; readonly active: number } {
    return { waiting: this.#waiting.get(capability) ?? 0, active: this.#active.get(capability) ?? 0 };
  }

  /** Inputs to a new job's priority. Refreshes the figures in the background. */
  clock(capability: Capability): QueueClock {
    this.#refreshOld();
    return this.#clocks.get(capability) ?? start;
  }

  /** Redis's memory use, as of a second ago. */
  get memory(): RedisMemory {
    return this.#memory;
  }

  /** Counts a job that was just admitted here, and is in its queue or about to be. */
  added(capability: Capability): void {
    this.#waiting.set(capability, (this.#waiting.get(capability) ?? 0) + 1);
  }

  /** Reads the figures once at start, so that the first requests are judged by real ones. */
  async refresh(): Promise<void> {
    await Promise.all([this.#readQueues(), this.#readMemory()]);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #refreshOld(): void {
    this.#refreshQueues(queueAgeMs);
    const now = Date.now();
    if (now - this.#memoryReadAt > memoryAgeMs) {
      this.#memoryReadAt = now;
      this.#readingMemory ??= this.#readMemory()
        .catch(() => undefined)
        .finally(() => {
          this.#readingMemory = undefined;
        });
    }
  }

  #refreshQueues(ageMs: number): void {
    const now = Date.now();
    if (now - this.#queuesReadAt <= ageMs) return;
    this.#queuesReadAt = now;
    this.#readingQueues ??= this.#readQueues()
      .catch(() => undefined)
      .finally(() => {
        this.#readingQueues = undefined;
      });
  }

  async #readQueues(): Promise<void> {
    const read = [...this.#queues].map(async ([capability, queue]) => {
      const [waiting, virtualTime] = await Promise.all([queue.waiting(), queue.clock.read()]);
      this.#waiting.set(capability, waiting);
      // Usually nothing waits, and the depth is not needed.
      const depth = waiting === 0 ? undefined : await queue.depth();
      const flows = depth === undefined || depth.oldestWaitMs <= flowingMs;
      this.#active.set(capability, depth?.active ?? 0);
      this.#clocks.set(capability, { flows, virtualTime });
    });
    await Promise.all(read);
  }

  async #readMemory(): Promise<void> {
    this.#memory = await memoryUse(this.#redis);
  }
}

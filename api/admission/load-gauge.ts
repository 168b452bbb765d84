import { type Capability, capabilities } from '../../shared/capabilities/capability.ts';
import type { CapabilityQueue } from '../../shared/queue/queue.ts';
import { memoryUse, type RedisClient, type RedisMemory } from '../../shared/redis/redis.ts';
import type { Shedding } from './admit.ts';

/** How old the queue length may be that admission looks at. */
const queueAgeMs = 100;
/** How old it may be where a request is to be refused for it: what has left the queue since is not known here. */
const refusalAgeMs = 20;
/** How old the memory figure may be; nor is a queue's older when nobody asks. */
const memoryAgeMs = 1000;
/** Above this share of Redis's memory new work is shed: at the limit not even workers can fetch. */
const memoryLimit = 0.7;

/** A queue in which a job has waited longer than this does not flow: so long it takes from hand to hand. */
const flowingMs = 25;

/** How far a queue has come. */
export interface QueueClock {
  /** Jobs are taken as soon as they come. */
  readonly flows: boolean;
  /** The highest turn that workers have taken; see `FairnessClock`. */
  readonly virtualTime: number;
}

const start: QueueClock = { flows: true, virtualTime: 0 };

/**
 * What admission knows of the load: queue lengths and Redis's memory. Figures are cached, because they lie under other
 * hash tags than the account's and cost a round trip; what this process admits in between is added to them.
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
  /** Readings under way: while Redis does not answer, no more are begun. */
  #readingQueues: Promise<void> | undefined;
  #readingMemory: Promise<void> | undefined;

  constructor(redis: RedisClient, queues: ReadonlyMap<Capability, CapabilityQueue>, queueLimit: number) {
    this.#redis = redis;
    this.#queues = queues;
    this.#queueLimit = queueLimit;
    // Without it a process that was idle would judge its next burst by what was true long ago.
    this.#timer = setInterval(() => this.#refreshOld(), memoryAgeMs);
    this.#timer.unref();
  }

  /** Why new work of this capability must be refused now, if it must. Refreshes the figures behind the caller's back. */
  shedding(capability: Capability): Shedding | undefined {
    this.#refreshOld();
    if (this.#memory.share > memoryLimit) return 'shed';
    return (this.#waiting.get(capability) ?? 0) >= this.#queueLimit ? 'queue_full' : undefined;
  }

  /** Reads the queues again, unless that was just done: for one whose queue seems to be full. */
  async refreshQueues(): Promise<void> {
    this.#refreshQueues(refusalAgeMs);
    await this.#readingQueues;
  }

  /** Jobs that wait for a worker, and that workers have where any wait, as far as is known. */
  fill(capability: Capability): { readonly waiting: number; readonly active: number } {
    return { waiting: this.#waiting.get(capability) ?? 0, active: this.#active.get(capability) ?? 0 };
  }

  /** What a new job's turn is decided by. Refreshes the figures behind the caller's back. */
  clock(capability: Capability): QueueClock {
    this.#refreshOld();
    return this.#clocks.get(capability) ?? start;
  }

  /** How much memory Redis uses, as of a second ago. */
  get memory(): RedisMemory {
    return this.#memory;
  }

  /** Counts a job that has just been admitted here, and is in its queue or on the way there. */
  added(capability: Capability): void {
    this.#waiting.set(capability, (this.#waiting.get(capability) ?? 0) + 1);
  }

  /** Reads the figures once; at start, so that the first requests are judged by real ones. */
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
      // Most of the time nothing waits, and more need not be asked.
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

import { type Capability, capabilities } from '../../shared/capabilities/capability.ts';
import type { Config } from '../../shared/config/config.ts';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import type { ShardedQueue } from '../../shared/queue/sharded-queue.ts';
import { targetWaitMs } from '../../shared/queue/target-wait.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import { memoryUse, type RedisMemory } from '../../shared/redis/redis-memory.ts';
import type { Shedding } from './admit.ts';
import { type ForecastRefusal, type ForecastRequest, QueueForecast } from './queue-forecast.ts';

/** Maximum age of the queue length for admission, of a queue that this process uses. */
const queueAgeMs = 100;
/** Maximum age for refusing a request: jobs that have left the queue since are not known here. */
const refusalAgeMs = 20;
/** Maximum age of the memory figure, and of the lengths of other queues. */
const memoryAgeMs = 1000;
/** Share of Redis's memory above which new work is shed: at the limit not even workers can fetch. */
const memoryLimit = 0.7;

/** Age above which a figure is no longer known: it is read each second, unless Redis is away. */
const knownMs = 5000;

/** Waiting time of a job above which its queue does not flow: the usual hand-over takes this long. */
const flowingMs = 25;

/** Jobs that a process may admit without a priority between two looks at a queue: as many, or a multiple of what it admitted before. */
const minBurst = 8;
const burstGrowth = 4;

/** What is read of a queue. */
type ReadQueue = Pick<ShardedQueue, 'waiting' | 'depth' | 'progress'>;

/** Admissions of one capability in this process. */
interface Admissions {
  /** Since the last look at the queue. */
  now: number;
  /** Between the looks before, the latest counting most. */
  before: number;
}

/**
 * The load as known to admission: queue lengths and Redis's memory. Figures are cached, because their hash tags differ from
 * the account's and reading costs a round trip; jobs that this process admits in between are added.
 */
export class LoadGauge {
  /** Share of the claims that jobs of high priority may have while others wait. */
  readonly highShare: number;
  readonly #redis: RedisClient;
  readonly #queues: ReadonlyMap<Capability, ReadQueue>;
  readonly #queueLimit: number;
  readonly #waiting = new Map<Capability, number>(capabilities.map((capability) => [capability, 0]));
  readonly #active = new Map<Capability, number>();
  /** Jobs that wait beside the queue by account; only known while others wait in it. */
  readonly #beside = new Map<Capability, ReadonlyMap<string, number>>();
  readonly #oldestWaitMs = new Map<Capability, number>();
  readonly #forecasts: ReadonlyMap<Capability, QueueForecast>;
  readonly #admissions = new Map<Capability, Admissions>();
  /** Admissions that this process is asking for: those that come together are asked for before any of them is admitted. */
  readonly #asked = new Map<Capability, number>();
  /** The same of each account, by capability and account. */
  readonly #askedOf = new Map<string, number>();
  /** Queues whose jobs wait for longer than their hand-over takes. */
  readonly #backedUp = new Set<Capability>();
  readonly #timer: NodeJS.Timeout;
  #memory: RedisMemory = { share: 0, limit: 0 };
  /** When the queues were last read. Times are ms of `performance.now()`: a clock that is put right must not stop that. */
  #queuesReadAt = Number.NEGATIVE_INFINITY;
  /** When each queue was last read. */
  readonly #readAt = new Map<Capability, number>();
  #memoryReadAt = Number.NEGATIVE_INFINITY;
  /** When figures were last received, by capability, and Redis's memory. */
  readonly #knownAt = new Map<Capability | 'memory', number>();
  /** Reads in progress: while Redis does not respond, no further ones start. */
  #readingQueues: Promise<void> | undefined;
  #readingMemory: Promise<void> | undefined;

  constructor(
    redis: RedisClient,
    queues: ReadonlyMap<Capability, ReadQueue>,
    config: Pick<Config, 'queueLimit' | 'queueWaitMs' | 'highShare'>,
  ) {
    this.#redis = redis;
    this.#queues = queues;
    this.#queueLimit = config.queueLimit;
    this.highShare = config.highShare;
    const forecast = (): QueueForecast => new QueueForecast(targetWaitMs(config), config.highShare);
    this.#forecasts = new Map([...queues.keys()].map((name) => [name, forecast()]));
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

  /**
   * An account's jobs of low priority, and those that wait for their vendors, which are not among the waiting ones; as last known, if
   * others wait.
   */
  beside(capability: Capability, account: string): number {
    return this.#beside.get(capability)?.get(account) ?? 0;
  }

  /**
   * How many of the waiting jobs may be an account's, when one of its own is asked for: those in its line, those of which it is not known
   * whose they are, and its others that are asked for.
   */
  maxWaitingOf(capability: Capability, account: string): number {
    const waiting = this.#forecasts.get(capability)?.maxWaitingOf(account) ?? this.fill(capability).waiting;
    return waiting + Math.max(0, (this.#askedOf.get(`${capability} ${account}`) ?? 0) - 1);
  }

  /** Whether the figures of a queue, or of Redis's memory, are those of now: Redis may be away. */
  isKnown(of: Capability | 'memory'): boolean {
    return performance.now() - (this.#knownAt.get(of) ?? Number.NEGATIVE_INFINITY) < knownMs;
  }

  /** How long the oldest waiting job had waited when the queue was last read, in ms. */
  oldestWaitMs(capability: Capability): number {
    return this.#oldestWaitMs.get(capability) ?? 0;
  }

  /**
   * Whether jobs are claimed as soon as they are queued, so that they need no priority. A burst that is larger than what the queue
   * has lately taken does not count as such: it would precede everybody. Refreshes the figures in the background.
   */
  flows(capability: Capability): boolean {
    this.#refreshOld();
    const { now, before } = this.#admissions.get(capability) ?? { now: 0, before: 0 };
    const burst = now + (this.#asked.get(capability) ?? 0);
    return !this.#backedUp.has(capability) && burst < Math.max(minBurst, burstGrowth * before);
  }

  /** Counts a job while its admission is asked for; one that is admitted is counted by `added` from then on. */
  asking({ capability, account, lane }: Pick<JobIdentity, 'capability' | 'account' | 'lane'>): void {
    if (lane === 'flex') return;
    addTo(this.#asked, capability, 1);
    addTo(this.#askedOf, `${capability} ${account}`, 1);
  }

  /** Ends what `asking` has begun. */
  answered({ capability, account, lane }: Pick<JobIdentity, 'capability' | 'account' | 'lane'>): void {
    if (lane === 'flex') return;
    addTo(this.#asked, capability, -1);
    addTo(this.#askedOf, `${capability} ${account}`, -1);
  }

  /** Why a request would wait too long, and is to be refused; undefined if it would not, or if that is not known. */
  refusal(capability: Capability, request: ForecastRequest): ForecastRefusal | undefined {
    this.#refreshOld();
    return this.#forecasts.get(capability)?.refusal(request);
  }

  /** Predicted wait in ms of a new job of an account; undefined if that is not known. Refreshes the figures in the background. */
  waitOf(capability: Capability, account: string, isHigh = false): number | undefined {
    this.#refreshOld();
    return this.#forecasts.get(capability)?.waitOf(account, isHigh);
  }

  /** Time in ms that so many jobs take to leave a queue; undefined if that is not known. */
  drainMs(capability: Capability, jobs: number): number | undefined {
    const rate = this.#forecasts.get(capability)?.rate;
    return rate === undefined ? undefined : jobs / rate;
  }

  /** Redis's memory use, as of a second ago. */
  get memory(): RedisMemory {
    return this.#memory;
  }

  /** Counts a job that was just admitted here, and is in its queue or about to be. One of low priority waits beside it. */
  added({ capability, account, lane }: Pick<JobIdentity, 'capability' | 'account' | 'lane'>): void {
    if (lane === 'flex') return;
    this.#waiting.set(capability, (this.#waiting.get(capability) ?? 0) + 1);
    this.#forecasts.get(capability)?.added(account, lane === 'high');
    const admissions = this.#admissions.get(capability);
    if (admissions === undefined) this.#admissions.set(capability, { now: 1, before: 0 });
    else admissions.now++;
  }

  /** Reads the figures once at start, so that the first requests are judged by real ones. */
  async refresh(): Promise<void> {
    this.#readAt.clear();
    await Promise.all([this.#readQueues(), this.#readMemory()]);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #refreshOld(): void {
    this.#refreshQueues(queueAgeMs);
    const now = performance.now();
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
    const now = performance.now();
    if (now - this.#queuesReadAt <= ageMs) return;
    this.#queuesReadAt = now;
    this.#readingQueues ??= this.#readQueues()
      .catch(() => undefined)
      .finally(() => {
        this.#readingQueues = undefined;
      });
  }

  async #readQueues(): Promise<void> {
    const now = performance.now();
    const due = [...this.#queues].filter(([capability]) => this.#isDue(capability, now));
    await Promise.all(due.map(([capability, queue]) => this.#readQueue(capability, queue)));
  }

  /** Whether a queue is read now. Reading all of them each time costs Redis much where they have many shards. */
  #isDue(capability: Capability, now: number): boolean {
    const { now: admitted, before } = this.#admissions.get(capability) ?? { now: 0, before: 0 };
    const isUsed = admitted > 0 || before >= 1 || (this.#waiting.get(capability) ?? 0) > 0;
    return isUsed || now - (this.#readAt.get(capability) ?? Number.NEGATIVE_INFINITY) > memoryAgeMs - queueAgeMs;
  }

  async #readQueue(capability: Capability, queue: ReadQueue): Promise<void> {
    this.#readAt.set(capability, performance.now());
    const before = this.#admissions.get(capability)?.now ?? 0;
    const waiting = await queue.waiting();
    // Usually nothing waits, and the rest is not needed.
    const [depth, progress] = waiting === 0 ? [] : await Promise.all([queue.depth(), queue.progress()]);
    const isBackedUp = depth !== undefined && depth.oldestWaitMs > flowingMs;
    const active = depth?.active ?? 0;
    const admissions = this.#admissions.get(capability);
    // Jobs admitted meanwhile were not in the queue yet.
    this.#waiting.set(capability, waiting + (admissions?.now ?? before) - before);
    this.#active.set(capability, active);
    this.#knownAt.set(capability, performance.now());
    this.#oldestWaitMs.set(capability, depth?.oldestWaitMs ?? 0);
    if (isBackedUp) this.#backedUp.add(capability);
    else this.#backedUp.delete(capability);
    if (admissions !== undefined) {
      admissions.before = Math.max(admissions.now, admissions.before / 2);
      admissions.now = 0;
    }
    const nothing = { claimed: 0, lines: new Map(), highLines: new Map(), beside: new Map() };
    const { beside, ...measured } = progress ?? nothing;
    this.#beside.set(capability, beside);
    this.#forecasts.get(capability)?.note({ at: performance.now(), isBackedUp, waiting, active, ...measured });
  }

  async #readMemory(): Promise<void> {
    this.#memory = await memoryUse(this.#redis);
    this.#knownAt.set('memory', performance.now());
  }
}

/** Adds to a count, of which nothing is kept at 0. */
function addTo<Key>(counts: Map<Key, number>, key: Key, number: number): void {
  const count = (counts.get(key) ?? 0) + number;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}

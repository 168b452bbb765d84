import assert from 'node:assert/strict';
import type { Redis } from 'ioredis';
import type { Capability } from '../../../shared/capabilities/capability.ts';
import type { JobIdentity } from '../../../shared/jobs/job-state.ts';
import type { ClaimCall } from '../../../shared/queue/claimed-queue.ts';
import type { CapabilityQueue } from '../../../shared/queue/queue.ts';
import type { QueueReader } from '../../../shared/queue/reading/queue-reader.ts';
import type { RedisClient, RedisHandle } from '../../../shared/redis/redis.ts';
import type { JobConsumerOptions } from '../../../workers/queue/consumer.ts';
import type { JobConsumer } from '../../../workers/queue/job-consumer.ts';
import { loadProduct } from '../gateway.ts';
import { JobFixture } from './job-fixture.ts';

const product =
  await loadProduct<typeof import('../../../workers/queue/job-consumer.ts')>('workers/queue/job-consumer');
const { ClaimedQueue } =
  await loadProduct<typeof import('../../../shared/queue/claimed-queue.ts')>('shared/queue/claimed-queue');
const { jobIdOfEntry } = await loadProduct<typeof import('../../../shared/ids.ts')>('shared/ids');
const { ClaimSlots } =
  await loadProduct<typeof import('../../../workers/queue/claim-slots.ts')>('workers/queue/claim-slots');
const shared = await loadProduct<typeof import('../../../shared/queue/queue.ts')>('shared/queue/queue');
const { connectRedis } = await loadProduct<typeof import('../../../shared/redis/redis.ts')>('shared/redis/redis');
const { createLogger } = await loadProduct<typeof import('../../../shared/runtime/log.ts')>('shared/runtime/log');
const keys = await loadProduct<typeof import('../../../shared/redis/keys.ts')>('shared/redis/keys');

const log = createLogger('silent', 'test').log;

type Run = JobConsumerOptions['run'];

/** A Redis of the suite's own with a queue for each test, and what consumes it. */
export class QueueFixture {
  readonly jobs: JobFixture;
  readonly redis: RedisHandle;
  capability = 'chat' as Capability;
  readonly #opened: { close(): Promise<void> }[] = [];
  #queue: CapabilityQueue | undefined;
  #made = 0;
  #accounts = 0;

  private constructor(jobs: JobFixture, redis: RedisHandle) {
    this.jobs = jobs;
    this.redis = redis;
  }

  static async start(): Promise<QueueFixture> {
    const jobs = await JobFixture.start();
    return new QueueFixture(jobs, await connectRedis(jobs.server.url, log));
  }

  async stop(): Promise<void> {
    for (const one of this.#opened.reverse()) await one.close();
    await this.redis.close();
    await this.jobs.stop();
  }

  /** Each test has one of its own. */
  newQueue(): void {
    this.capability = `chat${++this.#made}` as Capability;
    this.#queue = this.closeLater(new shared.CapabilityQueue(this.capability, this.redis.client));
  }

  get queue(): CapabilityQueue {
    assert.ok(this.#queue);
    return this.#queue;
  }

  get reader(): QueueReader {
    return this.queue.reader;
  }

  /** Start of the keys of the queue. */
  get keysPrefix(): string {
    return keys.queueKeysPrefix(this.capability);
  }

  closeLater<One extends { close(): Promise<void> }>(one: One): One {
    this.#opened.push(one);
    return one;
  }

  consume(
    run: Run,
    { concurrency = 10, ...more }: Partial<JobConsumerOptions> & { concurrency?: number } = {},
  ): JobConsumer {
    const consumer = new product.JobConsumer({
      ...{ capability: this.capability, redis: this.redis.client, workerId: `worker${this.#opened.length}` },
      ...{
        begins: false,
        slots: new ClaimSlots(concurrency),
        lockMs: 10_000,
        targetWaitMs: 0,
        stalledCheckMs: 200,
        maxStalledCount: 3,
        run,
        log,
      },
      ...more,
      waiting: more.waiting ?? this.redis.blocking(),
    });
    return this.closeLater(consumer);
  }

  /** A connection to wait by, how Redis names it, and what throws until it waits. */
  async waitingConnection(): Promise<{ waiting: RedisClient; id: number; waits: () => Promise<void> }> {
    const waiting = this.redis.blocking();
    const id = await (waiting as Redis).client('ID');
    const waits = async () => assert.match(String(await this.jobs.redis.client('LIST', 'ID', id)), / flags=\S*b/);
    return { waiting, id, waits };
  }

  job(more: Partial<JobIdentity> = {}): JobIdentity {
    return this.jobs.identity({ capability: this.capability, ...more });
  }

  /** Queues some jobs of an account; answers their ids. */
  async put(count: number, { hasPriority = false, account = 'account', work = 1 } = {}): Promise<string[]> {
    const put = Array.from({ length: count }, () => ({ ...this.job({ account }), work }));
    // One connection keeps their order, once Redis knows the script.
    const [first, ...others] = put;
    if (first !== undefined) await this.queue.enqueue(first, hasPriority);
    await Promise.all(others.map((one) => this.queue.enqueue(one, hasPriority)));
    return put.map(({ id }) => id);
  }

  /** Queues a job of an account of its own at a place in the queue's virtual time, which then is where it was. */
  async putAt(startTag: number): Promise<string> {
    const now = await this.jobs.redis.hget(this.clockKey, 'now');
    await this.jobs.redis.hset(this.clockKey, 'now', startTag);
    const [id] = await this.put(1, { hasPriority: true, account: `at${++this.#accounts}` });
    await this.jobs.redis.hset(this.clockKey, 'now', now ?? 0);
    return id as string;
  }

  /** One claim of a worker that leaves the jobs unbegun; returns their ids, in the order in which they would run. */
  async claim(wanted: number, more: Partial<ClaimCall> = {}): Promise<string[]> {
    const call = { token: 'claim', wanted, lockMs: 60_000, workerId: '', targetWaitMs: 0, ended: [], ...more };
    const { entries } = await new ClaimedQueue(this.capability).claim(this.redis.client, call);
    return entries.map(({ id }) => jobIdOfEntry(id));
  }

  /** Start of the gateway's own keys of the queue. */
  get root(): string {
    return keys.queueRoot(this.capability);
  }

  /** The virtual clock of the queue. */
  get clockKey(): string {
    return `${this.root}fairness`;
  }

  /** The workers of the queue that have reported. */
  get workersKey(): string {
    return `${this.root}workers`;
  }

  /** Queues a job as admission does, but for the word of it. */
  async queueWithState(identity: JobIdentity): Promise<string> {
    const name = `job_${identity.id}`;
    const fields = { data: JSON.stringify(identity), state: keys.jobKeys.state(identity.id) };
    await this.jobs.redis.hset(this.keysPrefix + name, fields);
    await this.jobs.redis.lpush(`${this.keysPrefix}wait`, name);
    return identity.id;
  }

  /** What the queue has left in Redis, but for what BullMQ keeps of it. */
  async leftovers(): Promise<string[]> {
    const keys = await this.jobs.redis.keys(`${this.keysPrefix}*`);
    return keys.filter((key) => !/:(meta|events|id|marker|stalled-check|stalled)$/.test(key));
  }
}

/** What runs jobs, which takes no time, and the jobs it has run. */
export function noting(): { ran: string[]; run: Run } {
  const ran: string[] = [];
  const run: Run = async ({ job }) => {
    ran.push(job.id);
    return 'done';
  };
  return { ran, run };
}

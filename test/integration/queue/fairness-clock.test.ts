import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { Queue, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import type { CapabilityQueue } from '../../../shared/queue/queue.ts';
import type { RedisClient, RedisHandle } from '../../../shared/redis/redis.ts';
import { eventually } from '../../support/eventually.ts';
import { JobFixture } from '../../support/faults/job-fixture.ts';
import { loadProduct } from '../../support/gateway.ts';
import { startRedisCluster, type TestRedisCluster } from '../../support/redis-cluster.ts';

const queues = await loadProduct<typeof import('../../../shared/queue/queue.ts')>('shared/queue/queue');
const { connectRedis } = await loadProduct<typeof import('../../../shared/redis/redis.ts')>('shared/redis/redis');
const { createLogger } = await loadProduct<typeof import('../../../shared/runtime/log.ts')>('shared/runtime/log');

const clockKey = 'sluice:{q-chat}:fairness';
const jobKeyStart = 'sluice:{q-chat}:chat:';
/** Where the base is raised, and by what. */
const limit = 2 ** 20 + 2 ** 18;
const raise = 2 ** 20;

/** The queue of chats, and a look at what Redis has of it. */
class Line {
  readonly queue: CapabilityQueue;
  readonly #redis: RedisClient;
  readonly #jobs: JobFixture;

  constructor(redis: RedisClient, jobs: JobFixture) {
    this.#redis = redis;
    this.#jobs = jobs;
    this.queue = new queues.CapabilityQueue('chat', redis);
  }

  /** Puts a job into the queue; answers its id. */
  async add(turn?: number, queue = this.queue): Promise<string> {
    const job = this.#jobs.identity();
    await queue.enqueue({ ...job, request: '{}' }, turn);
    return job.id;
  }

  /** Puts one there as a process does that knows nothing of a new base yet. */
  async addByPriority(priority: number): Promise<string> {
    const job = this.#jobs.identity();
    const queue = new Queue('chat', queues.queueOptions('chat', this.#redis, {}));
    await queue.add('job', { ...job, request: '{}' }, { jobId: `job_${job.id}`, priority });
    await queue.close();
    return job.id;
  }

  async setTime(now: number, base = 0): Promise<void> {
    await this.#redis.hset(clockKey, { now, base });
    await this.queue.clock.read();
  }

  async time(): Promise<{ now: number; base: number }> {
    const [now, base] = await this.#redis.hmget(clockKey, 'now', 'base');
    return { now: Number(now), base: Number(base) };
  }

  /** Tells the clock of a taken job, and waits until the virtual time is as it should be then. */
  async take(priority: number, now: number): Promise<void> {
    this.queue.clock.taken(priority);
    await eventually(async () => assert.equal((await this.time()).now, now, 'virtual time'));
  }

  /** Waiting jobs that have a turn, as they will be taken: their ids and priorities. */
  async waiting(): Promise<[id: string, priority: number][]> {
    const scores = await this.#redis.zrange(`${jobKeyStart}prioritized`, 0, '-1', 'WITHSCORES');
    const rows: [string, number][] = [];
    for (let index = 0; index < scores.length; index += 2) {
      const queued = scores[index] as string;
      const priority = Math.floor(Number(scores[index + 1]) / 2 ** 32);
      rows.push([queued.slice('job_'.length), priority]);
    }
    return rows;
  }
}

describe('fairness clock of a queue', () => {
  let jobs: JobFixture;
  let redis: Redis;
  let line: Line;

  before(async () => {
    jobs = await JobFixture.start();
  });

  after(() => jobs?.stop());

  beforeEach(async () => {
    await jobs.redis.flushall();
    // A connection of its own: what a clock notes a while later must not come into the next test.
    redis = jobs.redis.duplicate();
    line = new Line(redis, jobs);
    // BullMQ writes what it is as soon as it is connected.
    await line.queue.bull.waitUntilReady();
    await redis.ping();
  });

  afterEach(async () => {
    await line.queue.close();
    redis.disconnect();
  });

  test('the fairness clock shows the highest claimed priority and never goes back', async () => {
    assert.equal(await line.queue.clock.read(), 0);
    await line.take(5, 5);
    const other = new queues.CapabilityQueue('chat', redis);
    other.clock.taken(3);
    // On the same connection, so it comes after the note.
    assert.equal(await line.queue.clock.read(), 5);
    await line.take(6, 6);
    await other.close();
  });

  test('the fairness clock sends nothing to Redis for jobs without a priority, and two commands for a thousand with one', async () => {
    await jobs.redis.config('RESETSTAT');
    for (let count = 0; count < 1000; count++) line.queue.clock.taken(0);
    for (let priority = 1; priority <= 1000; priority++) line.queue.clock.taken(priority);
    await eventually(async () => assert.equal((await line.time()).now, 1000, 'virtual time'));
    const calls = /^cmdstat_hset:calls=(\d+)/m.exec(await jobs.redis.info('commandstats'))?.[1];
    assert.equal(calls, '2', 'the first at once, the highest of the others after a while');
  });

  test('a queue orders jobs without a priority first, then by priority, then by arrival', async () => {
    const ids = [await line.add(7), await line.add(3), await line.add(), await line.add(7), await line.add()];
    const order = [ids[2], ids[4], ids[1], ids[0], ids[3]];
    const positions = await Promise.all(order.map((id) => line.queue.position(id as string)));
    assert.deepEqual(positions, [0, 1, 2, 3, 4]);
    assert.equal(await line.queue.waiting(), 5);
    const depth = await line.queue.depth();
    assert.equal(depth.waiting, 5);
    assert.equal(await line.queue.remove(order[2] as string), true);
    assert.equal(await line.queue.position(order[3] as string), 2);
  });

  test('the depth of a queue reports the wait of the oldest job also when that has a priority and is not next', async () => {
    await line.add(2);
    const old = await line.add(3);
    await jobs.redis.hset(`${jobKeyStart}job_${old}`, 'timestamp', Date.now() - 60_000);
    const { oldestWaitMs } = await line.queue.depth();
    assert.ok(oldestWaitMs >= 60_000 && oldestWaitMs < 120_000, `${oldestWaitMs} ms`);
  });

  test('the fairness clock raises its base before the limit of BullMQ and keeps the order of waiting jobs', async () => {
    await line.setTime(limit - 10);
    const turns = [limit + 5, limit - 9, limit - 9, raise - 5, limit + 200_000];
    const ids: string[] = [];
    for (const turn of turns) ids.push(await line.add(turn));
    await line.take(limit - 1, limit - 1);
    assert.equal((await line.time()).base, 0);
    await line.take(limit, limit);
    assert.deepEqual(await line.time(), { now: limit, base: raise });
    assert.deepEqual(await line.waiting(), [
      // It was put before the virtual time by a process that had not heard of it; there is no priority below 1.
      [ids[3], 1],
      [ids[1], limit - 9 - raise],
      [ids[2], limit - 9 - raise],
      [ids[0], limit + 5 - raise],
      [ids[4], limit + 200_000 - raise],
    ]);
  });

  test('the fairness clock moves a job that was added with the old base to its priority', async () => {
    await line.setTime(limit, raise);
    const after = await line.add(limit + 3);
    const late = await line.addByPriority(limit + 2);
    const before = await line.add(limit + 2);
    assert.equal((await line.waiting()).at(-1)?.[0], late);
    await line.take(limit + 1 - raise, limit + 1);
    const order = (await line.waiting()).map(([id]) => id);
    assert.deepEqual(new Set(order.slice(0, 2)), new Set([late, before]));
    assert.equal(order[2], after);
  });

  test('the fairness clock advances correctly for a job added before its base was raised and claimed after', async () => {
    await line.setTime(limit + 100, raise);
    line.queue.clock.taken(limit + 50);
    await line.take(limit + 150, limit + 150);
  });

  test('the fairness clock of another process reads the new base before it adds a job', async () => {
    const other = new queues.CapabilityQueue('chat', jobs.redis);
    await line.setTime(limit + 100, raise);
    const id = await line.add(limit + 101, other);
    assert.deepEqual(await line.waiting(), [[id, limit + 101 - raise]]);
    await other.close();
  });

  test('the fairness clock bounds every priority to the range of BullMQ', async () => {
    await line.setTime(limit - 1);
    const id = await line.add(2 ** 40);
    const rows = await line.waiting();
    assert.deepEqual(rows, [[id, limit - 1 + 2 ** 19]]);
    assert.ok((rows[0]?.[1] as number) < 2 ** 21);
  });

  test('the fairness clock loses no job and keeps the order while its base rises', { timeout: 60_000 }, async (t) => {
    const redis = await connectRedis(jobs.server.url, createLogger('silent', 'test').log);
    const count = 600;
    await line.setTime(limit - count / 2);
    const turns = Array.from({ length: count }, (_, index) => limit - count / 2 + 1 + index);
    const turnOf = new Map<string, number>();
    await Promise.all(turns.map(async (turn) => turnOf.set(await line.add(turn), turn)));
    const taken: number[] = [];
    let lateJobs: Promise<unknown> | undefined;
    const worker = new Worker(
      'chat',
      async (job) => {
        line.queue.clock.taken(job.priority);
        taken.push(turnOf.get(job.data.id) as number);
        // By then the base has been raised, which these do not know.
        lateJobs ??= (await line.time()).base > 0 ? addLate() : undefined;
      },
      queues.queueOptions('chat', redis.client, { concurrency: 1, removeOnComplete: { count: 0 } }),
    );
    t.after(() => worker.close().then(redis.close));
    const addLate = async (): Promise<void> => {
      for (let index = 1; index <= 20; index++) {
        const turn = limit + count / 2 + index;
        turnOf.set(await line.addByPriority(turn), turn);
      }
    };
    await eventually(() => assert.equal(taken.length, count + 20, 'jobs that ran'), 50_000);
    await lateJobs;
    assert.deepEqual(
      taken,
      taken.toSorted((one, other) => one - other),
    );
    assert.equal(new Set(taken).size, count + 20);
    assert.equal(await line.queue.waiting(), 0);
    assert.equal((await line.time()).base, raise);
  });

  test('the fairness clock lowers many waiting jobs gradually, a thousand at a time', async (t) => {
    const count = process.env.SLUICE_SOAK ? 20_000 : 2500;
    await line.setTime(limit - 1);
    for (let index = 0; index < count; index += 500) {
      await Promise.all(Array.from({ length: 500 }, (_, more) => line.add(limit + index + more)));
    }
    await jobs.redis.config('SET', 'slowlog-log-slower-than', '1000');
    const priorities = async (): Promise<number[]> => (await line.waiting()).map(([, priority]) => priority);
    for (let notes = 0; notes < count / 1000; notes++) {
      await line.take(limit + notes - (notes === 0 ? 0 : raise), limit + notes);
      const lowered = Math.min(count, (notes + 1) * 1000);
      const expected = Array.from({ length: count }, (_, index) => limit + index - (index < lowered ? raise : 0));
      assert.deepEqual(await priorities(), expected);
    }
    const slow = (await jobs.redis.call('SLOWLOG', 'GET', '-1')) as [number, number, number, string[]][];
    const scripts = slow.filter(([, , , command]) => command.includes(clockKey));
    const longest = Math.max(0, ...scripts.map(([, , microseconds]) => microseconds));
    t.diagnostic(`${count} jobs: ${(longest / 1000).toFixed(1)} ms`);
  });
});

describe('fairness clock on a Redis Cluster', () => {
  let jobs: JobFixture;
  let cluster: TestRedisCluster;
  let redis: RedisHandle;

  before(async () => {
    [jobs, cluster] = await Promise.all([JobFixture.start(), startRedisCluster()]);
    redis = await connectRedis(cluster.url, createLogger('silent', 'test').log);
  });

  after(async () => {
    await redis?.close();
    await cluster?.stop();
    await jobs?.stop();
  });

  test('the fairness clock works on a Redis Cluster, on the node of its queue', async () => {
    const line = new Line(redis.client, jobs);
    await line.setTime(limit - 1);
    const id = await line.add(limit + 7);
    await line.take(limit, limit);
    assert.deepEqual(await line.time(), { now: limit, base: raise });
    assert.deepEqual(await line.waiting(), [[id, limit + 7 - raise]]);
    await line.queue.close();
  });
});

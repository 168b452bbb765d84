import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { type Job, Queue, Worker } from 'bullmq';
import type { Capability } from '../../../shared/capabilities/capability.ts';
import type { QueuedJob } from '../../../shared/queue/queue.ts';
import { eventually } from '../../support/eventually.ts';
import { noting, QueueFixture } from '../../support/faults/queue-fixture.ts';
import { loadProduct } from '../../support/gateway.ts';
import { startRedisCluster } from '../../support/redis-cluster.ts';

const shared = await loadProduct<typeof import('../../../shared/queue/queue.ts')>('shared/queue/queue');
const { TaskWorker } =
  await loadProduct<typeof import('../../../workers/queue/task-worker.ts')>('workers/queue/task-worker');
const { connectRedis } = await loadProduct<typeof import('../../../shared/redis/redis.ts')>('shared/redis/redis');
const { createLogger } = await loadProduct<typeof import('../../../shared/runtime/log.ts')>('shared/runtime/log');

/** Where the base is raised, and by what. */
const limit = 2 ** 20 + 2 ** 18;
const raise = 2 ** 20;

describe('fairness clock of a queue', () => {
  let queues: QueueFixture;
  before(async () => {
    queues = await QueueFixture.start();
  });
  after(() => queues?.stop());
  beforeEach(() => queues.newQueue());

  async function setTime(now: number, base = 0): Promise<void> {
    await queues.jobs.redis.hset(queues.clockKey, { now, base });
  }

  async function time(): Promise<{ now: number; base: number }> {
    const [now, base] = await queues.jobs.redis.hmget(queues.clockKey, 'now', 'base');
    return { now: Number(now), base: Number(base) };
  }

  /** Waiting jobs that have a priority, as they will be claimed: their ids and priorities. */
  async function waiting(): Promise<[id: string, priority: number][]> {
    const scores = await queues.jobs.redis.zrange(`${queues.keysPrefix}prioritized`, 0, '-1', 'WITHSCORES');
    return scores.flatMap((name, index) =>
      index % 2 === 0 ? [[name.slice('job_'.length), Math.floor(Number(scores[index + 1]) / 2 ** 32)]] : [],
    );
  }

  /** A job of no line was claimed. */
  async function claimed(priority: number): Promise<void> {
    await queues.queue.noteClaimed(queues.job({ account: 'nobody' }), priority);
  }

  /** Puts one there as a process of the previous release does that knows nothing of a new base yet. */
  async function addByPriority(priority: number): Promise<string> {
    const job = queues.job();
    const queue = new Queue(queues.capability, shared.queueOptions(queues.capability, queues.redis.client, {}));
    await queue.add('job', { ...job, request: '{}' }, { jobId: `job_${job.id}`, priority });
    await queue.close();
    return job.id;
  }

  test('the fairness clock shows the highest claimed priority and never goes back', async () => {
    for (const [priority, now] of [
      [5, 5],
      [3, 5],
      [6, 6],
    ] as const) {
      await claimed(priority);
      assert.equal((await time()).now, now);
    }
  });

  test('claiming a job advances the fairness clock in the same step', async () => {
    const id = await queues.putAt(41);
    const { ran, run } = noting();
    queues.consume(run);
    await eventually(() => assert.deepEqual(ran, [id]));
    assert.deepEqual(await time(), { now: 41, base: 0 });
  });

  test('a queue orders jobs without a priority first, then by priority, then by arrival', async () => {
    const ids = [await queues.putAt(7), await queues.putAt(3), ...(await queues.put(1)), await queues.putAt(7)];
    ids.push(...(await queues.put(1)));
    const order = [ids[2], ids[4], ids[1], ids[0], ids[3]];
    const positions = await Promise.all(order.map((id) => queues.reader.position(id as string)));
    assert.deepEqual(positions, [0, 1, 2, 3, 4]);
    assert.equal(await queues.reader.waiting(), 5);
    assert.equal((await queues.reader.depth()).waiting, 5);
    assert.equal(await queues.queue.remove(order[2] as string), true);
    assert.equal(await queues.reader.position(order[3] as string), 2);
  });

  test('the depth of a queue reports the wait of the oldest job also when that has a priority and is not next', async () => {
    await queues.putAt(2);
    const old = await queues.putAt(3);
    await queues.jobs.redis.hset(`${queues.keysPrefix}job_${old}`, 'timestamp', Date.now() - 60_000);
    const { oldestWaitMs } = await queues.reader.depth();
    assert.ok(oldestWaitMs >= 60_000 && oldestWaitMs < 120_000, `${oldestWaitMs} ms`);
  });

  test('the fairness clock raises its base before the limit of BullMQ and keeps the order of waiting jobs', async () => {
    await setTime(limit - 10);
    const tags = [limit + 5, limit - 9, limit - 9, raise - 5, limit + 200_000];
    const ids: string[] = [];
    for (const tag of tags) ids.push(await queues.putAt(tag));
    await claimed(limit - 1);
    assert.equal((await time()).base, 0);
    await claimed(limit);
    assert.deepEqual(await time(), { now: limit, base: raise });
    assert.deepEqual(await waiting(), [
      // It was there before the virtual time came to it; there is no priority below 1.
      [ids[3], 1],
      [ids[1], limit - 9 - raise],
      [ids[2], limit - 9 - raise],
      [ids[0], limit + 5 - raise],
      [ids[4], limit + 200_000 - raise],
    ]);
  });

  test('the fairness clock moves a job that was added with the old base to its priority', async () => {
    await setTime(limit, raise);
    const after = await queues.putAt(limit + 3);
    const late = await addByPriority(limit + 2);
    const before = await queues.putAt(limit + 2);
    assert.equal((await waiting()).at(-1)?.[0], late);
    await claimed(limit + 1 - raise);
    const order = (await waiting()).map(([id]) => id);
    assert.deepEqual(new Set(order.slice(0, 2)), new Set([late, before]));
    assert.equal(order[2], after);
  });

  test('the fairness clock advances correctly for a job added before its base was raised and claimed after', async () => {
    await setTime(limit + 100, raise);
    await claimed(limit + 150);
    assert.deepEqual(await time(), { now: limit + 150, base: raise });
  });

  test("only the first job of a line has a start tag, the others BullMQ's last priority, until they are the first", async () => {
    await setTime(limit);
    const [first, second, third] = await queues.put(3, { hasPriority: true });
    const lastPriority = 2 ** 21 - 1;
    assert.deepEqual(await waiting(), [
      [first, limit],
      [second, lastPriority],
      [third, lastPriority],
    ]);
    await queues.queue.noteClaimed(queues.job({ id: first as string }), limit);
    assert.deepEqual(await waiting(), [
      [second, limit + 1 - raise],
      [third, lastPriority],
    ]);
    await queues.queue.remove(second as string);
    assert.deepEqual(await waiting(), [[third, limit + 1 - raise]]);
  });

  test('a queue loses no job and keeps the order while the base of its clock rises', { timeout: 60_000 }, async () => {
    const count = 600;
    await setTime(limit - count / 2 + 1);
    const ids = await queues.put(count, { hasPriority: true });
    const ran: string[] = [];
    let adding: Promise<unknown> | undefined;
    const addLate = async (): Promise<void> => {
      for (let index = 1; index <= 20; index++) ids.push(await addByPriority(limit + count / 2 + index));
    };
    const run = async ({ job }: { job: { id: string } }): Promise<'done'> => {
      ran.push(job.id);
      // By then the base has been raised, which these do not know.
      adding ??= (await time()).base > 0 ? addLate() : undefined;
      return 'done';
    };
    queues.consume(run, { concurrency: 1 });
    await eventually(() => assert.equal(ran.length, count + 20, 'jobs that ran'), 50_000);
    await adding;
    assert.deepEqual(ran, ids);
    assert.equal(await queues.reader.waiting(), 0);
    assert.equal((await time()).base, raise);
  });

  test("jobs that BullMQ's Worker claims leave their lines, and advance the clock", async () => {
    const ids = await queues.put(3, { hasPriority: true });
    const ran: string[] = [];
    const worker = new Worker(
      queues.capability,
      async ({ data, priority }) => {
        await queues.queue.noteClaimed(data, priority);
        ran.push(data.id);
      },
      shared.queueOptions(queues.capability, queues.redis.client, { concurrency: 1, removeOnComplete: { count: 0 } }),
    );
    queues.closeLater(worker);
    await eventually(() => assert.deepEqual(ran, ids));
    assert.deepEqual(await time(), { now: 3, base: 0 });
    assert.equal((await queues.reader.progress()).lines.size, 0);
  });

  test('an account whose job was claimed by a worker that died before it was noted has its turns once the job returns or is removed', async () => {
    for (const isRemoved of [false, true]) {
      queues.newQueue();
      const options = shared.queueOptions(queues.capability, queues.redis.client, {
        autorun: false,
        lockDuration: 100,
      });
      const [first = '', ...ours] = await queues.put(3, { account: 'ours', hasPriority: true });
      const others = await queues.put(6, { account: 'others', hasPriority: true });
      const dead = queues.closeLater(new Worker<QueuedJob>(queues.capability, null, options));
      assert.equal((await dead.getNextJob('dead', { block: false }))?.data.id, first);
      if (isRemoved) await eventually(async () => assert.equal(await queues.queue.remove(first), true));
      const ran: string[] = [];
      const run = async ({ data }: Job<QueuedJob>) => {
        ran.push(data.id);
        if (isRemoved || ran.length > 1) return;
        await eventually(async () => assert.equal(await queues.jobs.redis.llen(`${queues.keysPrefix}wait`), 1));
      };
      const more = { autorun: true, stalledInterval: 100, maxStalledCount: 9, removeOnComplete: { count: 0 } };
      queues.closeLater(new TaskWorker(queues.queue, run, { ...options, ...more, lockDuration: 10_000 }));
      const count = isRemoved ? 8 : 9;
      await eventually(() => assert.equal(ran.length, count));
      assert.ok(
        ran.indexOf(ours[1] as string) < ran.indexOf(others[4] as string),
        `${ran.map((id) => ours.includes(id))}`,
      );
      assert.equal(await queues.jobs.redis.exists(`${queues.root}lines`), 0);
    }
  });

  test('the fairness clock lowers many waiting jobs gradually, a thousand at a time', async (t) => {
    const count = process.env.SLUICE_SOAK ? 20_000 : 2500;
    await setTime(limit - 1);
    const { redis } = queues.jobs;
    // As BullMQ has them, of no line.
    for (let index = 0; index < count; index += 500) {
      const some = Array.from({ length: 500 }, (_, more) => [(limit + index + more) * 2 ** 32, `job_${index + more}`]);
      await redis.zadd(`${queues.keysPrefix}prioritized`, ...some.flat());
    }
    await redis.config('SET', 'slowlog-log-slower-than', '1000');
    for (let notes = 0; notes < count / 1000; notes++) {
      await claimed(limit + notes - (notes === 0 ? 0 : raise));
      const lowered = Math.min(count, (notes + 1) * 1000);
      const expected = Array.from({ length: count }, (_, index) => limit + index - (index < lowered ? raise : 0));
      assert.deepEqual(
        (await waiting()).map(([, priority]) => priority),
        expected,
      );
    }
    const slow = (await redis.call('SLOWLOG', 'GET', '-1')) as [number, number, number, string[]][];
    const scripts = slow.filter(([, , , command]) => command.includes(queues.clockKey));
    const longest = Math.max(0, ...scripts.map(([, , microseconds]) => microseconds));
    t.diagnostic(`${count} jobs: ${(longest / 1000).toFixed(1)} ms`);
  });
});

describe('fairness clock on a Redis Cluster', () => {
  test('lines and the fairness clock work on a Redis Cluster, on the node of their queue', async (t) => {
    const cluster = await startRedisCluster();
    t.after(() => cluster.stop());
    const redis = await connectRedis(cluster.url, createLogger('silent', 'test').log);
    t.after(() => redis.close());
    const queue = new shared.CapabilityQueue('chat' as Capability, redis.client);
    t.after(() => queue.close());
    const job = (id: string) => ({ id, account: 'one', request: '{}' }) as never;
    for (const id of ['1', '2', '3']) assert.equal(await queue.enqueue(job(id), true), 'queued');
    assert.equal(await queue.remove('1'), true);
    await queue.noteClaimed(job('2'), 1);
    assert.deepEqual([...(await queue.reader.progress()).lines], [['one', 1]]);
    assert.equal(await queue.reader.position('3'), 0);
  });
});

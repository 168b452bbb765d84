import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { noting, QueueFixture } from '../../support/faults/queue-fixture.ts';
import { loadProduct } from '../../support/gateway.ts';
import { SeededRandom } from '../../support/seeded-random.ts';

const { ClaimedQueue } =
  await loadProduct<typeof import('../../../shared/queue/claimed-queue.ts')>('shared/queue/claimed-queue');
const { ParkedJobs } = await loadProduct<typeof import('../../../shared/queue/parking/parked-jobs.ts')>(
  'shared/queue/parking/parked-jobs',
);

const hasPriority = true;
const route = 'vendor/model';
/** Of four jobs of high priority one other follows. */
const highShare = 0.8;

describe('jobs of high priority in a queue', () => {
  let queues: QueueFixture;
  before(async () => {
    queues = await QueueFixture.start();
  });
  after(() => queues?.stop());
  beforeEach(() => queues.newQueue());

  async function putHigh(account: string, count: number, work = 1): Promise<string[]> {
    const put = Array.from({ length: count }, () => ({
      ...queues.job({ account, lane: 'high' }),
      request: '{}',
      work,
    }));
    for (const job of put) assert.equal(await queues.queue.enqueue(job, false, undefined, [], 'high'), 'queued');
    return put.map(({ id }) => id);
  }

  /** One claim; returns the jobs in the order in which they would run. */
  async function claim(wanted: number, share = highShare): Promise<string[]> {
    return await queues.claim(wanted, { highShare: share });
  }

  async function claimOneByOne(count: number, share = highShare): Promise<string[]> {
    const ids: string[] = [];
    for (let index = 0; index < count; index++) ids.push(...(await claim(1, share)));
    return ids;
  }

  const leftInRedis = async () => await queues.jobs.redis.keys(`${queues.root}high*`);

  test('jobs of high priority are claimed before all others, and accounts take turns', async () => {
    const others = await queues.put(1, { account: 'd' });
    const withPriority = await queues.put(1, { hasPriority, account: 'c' });
    const [a, b] = [await putHigh('a', 2), await putHigh('b', 1)];
    assert.deepEqual(await claim(5), [a[0], b[0], a[1], ...others, ...withPriority]);
    assert.deepEqual(await leftInRedis(), []);
    assert.deepEqual(await claim(1), []);
  });

  test('while both wait, the share of jobs of high priority is as set, by one claim or many', async () => {
    for (const [share, high] of [
      [0.8, 80],
      [0.5, 50],
      [0.7, 70],
    ] as const) {
      queues.newQueue();
      const first = new Set(await putHigh('a', 120));
      await queues.put(60, { account: 'a' });
      await queues.put(60, { hasPriority, account: 'a' });
      const order = [...(await claim(30, share)), ...(await claimOneByOne(30, share)), ...(await claim(40, share))];
      assert.equal(order.length, 100);
      assert.equal(order.filter((id) => first.has(id)).length, high, `${share}`);
      let without = 0;
      for (const id of order) {
        without = first.has(id) ? without + 1 : 0;
        assert.ok(without <= Math.ceil(share / (1 - share)), `${without} in a row of ${share}`);
      }
    }
  });

  test('others go on beside jobs of high priority that come one by one, each as the one before it is claimed', async () => {
    const others = await queues.put(10, { hasPriority, account: 'b' });
    const order: string[] = [];
    for (let index = 0; index < 50; index++) {
      await putHigh('a', 1);
      order.push(...(await claim(1)));
    }
    assert.deepEqual(
      order.filter((id) => others.includes(id)),
      others,
    );
  });

  test('a share of 1 leaves others nothing, and what is not needed of a share is lent', async () => {
    const others = await queues.put(5, { hasPriority, account: 'b' });
    const high = await putHigh('a', 20);
    assert.deepEqual(await claim(20, 1), high);
    assert.deepEqual(await claim(20, 1), others);
    const more = await putHigh('a', 20);
    assert.deepEqual(await claim(20), more, 'nothing is owed to those who did not wait');
  });

  test('accounts share the lane by work, whatever they have of the rest of the queue', async () => {
    const large = await putHigh('large', 10, 10);
    const small = await putHigh('small', 100);
    const [other, newcomer] = [
      await queues.put(1, { hasPriority, account: 'large' }),
      await queues.put(1, { hasPriority, account: 'new' }),
    ];
    const order = await claim(55, 1);
    assert.equal(order.filter((id) => large.includes(id)).length, 5);
    assert.equal(order.filter((id) => small.includes(id)).length, 50);
    const rest = await claim(100, 1);
    assert.deepEqual(rest.slice(-2), [...other, ...newcomer], 'the lane has moved nobody in the queue');
  });

  test("an account's jobs of high priority are claimed in order, newest first while their callers give up", async () => {
    const ids = await putHigh('a', 4);
    for (const id of ids) await queues.jobs.redis.zincrby(`${queues.root}high:line:a`, -2_000_000, `job_${id}`);
    assert.equal(await queues.queue.remove(ids[0] as string, true), true);
    assert.deepEqual(await queues.claim(2, { targetWaitMs: 1000 }), [ids[3], ids[2]]);
    assert.deepEqual(await claim(2), [ids[1]]);
    assert.deepEqual(await leftInRedis(), []);
  });

  test('jobs of high priority are among those that wait: number, oldest, drain, and their place and that of others', async () => {
    const untimed = await queues.put(1, { account: 'c' });
    const timed = await queues.put(2, { hasPriority, account: 'b' });
    const high = await putHigh('a', 6);
    assert.equal(await queues.reader.waiting(), 9);
    assert.equal(await queues.reader.prioritized(), 8);
    assert.equal(await queues.reader.high(), 6);
    const { lines, highLines } = await queues.reader.progress();
    assert.deepEqual([[...lines], [...highLines]], [[['b', 2]], [['a', 6]]]);
    const { redis } = queues.jobs;
    for (const [id, age] of [
      [high[0], 2000],
      [timed[0], 5000],
    ] as const) {
      await redis.hincrby(`${queues.keysPrefix}job_${id}`, 'timestamp', -age);
      const { oldestWaitMs } = await queues.reader.depth();
      assert.ok(oldestWaitMs >= age && oldestWaitMs < age + 1000, `${oldestWaitMs}`);
    }
    const waiting = [...untimed, ...timed, ...high];
    const places = new Map<string, number | undefined>();
    for (const id of waiting) places.set(id, await queues.reader.position(id, highShare));
    const order = [...(await claimOneByOne(4)), ...(await claim(9))];
    assert.deepEqual(
      order.map((id) => places.get(id)),
      order.map((_, index) => index),
    );
    assert.equal(await queues.reader.position(high[0] as string, highShare), undefined);
  });

  test('the oldest of all others is known behind hundreds of jobs of high priority', async () => {
    const [other] = await queues.put(1, { hasPriority, account: 'b' });
    await queues.jobs.redis.hincrby(`${queues.keysPrefix}job_${other}`, 'timestamp', -9000);
    await putHigh('a', 150);
    assert.ok((await queues.reader.depth()).oldestWaitMs >= 9000);
  });

  test('a repeated enqueueing of a job of high priority changes nothing, and it can be removed until it is claimed', async () => {
    const job = { ...queues.job({ lane: 'high' }), request: '{}' };
    const enqueue = () => queues.queue.enqueue(job, false, undefined, [], 'high');
    assert.deepEqual([await enqueue(), await enqueue()], ['queued', 'there']);
    const [second] = await putHigh('b', 1);
    assert.equal(await queues.queue.remove(job.id, true), true);
    assert.equal(await queues.queue.has(job.id), false);
    assert.deepEqual((await queues.reader.progress()).highLines, new Map([['b', 1]]));
    assert.deepEqual(await claim(3), [second]);
    assert.equal(await queues.queue.remove(second as string), false, 'claimed');
    assert.deepEqual(await leftInRedis(), []);
  });

  test('a job of high priority whose worker is lost, or gives it back, is the next one again', async () => {
    const others = await queues.put(3, { hasPriority, account: 'b' });
    const [first, second, ...more] = await putHigh('a', 4);
    assert.deepEqual(await claim(2, 1), [first, second]);
    const queue = new ClaimedQueue(queues.capability);
    await queue.requeue(queues.redis.client, { id: `job_${second}`, token: 'claim' });
    await queues.jobs.redis.del(`${queues.keysPrefix}job_${first}:lock`);
    assert.equal(await queue.returnStalled(queues.redis.client, 1, 3), 1);
    assert.equal(await queues.reader.position(first as string, 1), 0);
    assert.equal(await queues.reader.position(more[0] as string, 1), 2);
    assert.deepEqual(await claim(10, 1), [first, second, ...more, ...others]);
  });

  test('a worker that waits hears of a job of high priority, and removes all of it once it has ended', async () => {
    const { ran, run } = noting();
    const consumer = queues.consume(run, { highShare });
    const ids = await putHigh('a', 3);
    await eventually(() => assert.deepEqual(new Set(ran), new Set(ids)));
    await eventually(async () => assert.deepEqual(await queues.leftovers(), []));
    assert.deepEqual(await leftInRedis(), []);
    // Its checks for stalled jobs would be counted among another test's commands.
    await consumer.close();
  });

  test('virtual time of the lane is kept below its limit, and the order of its jobs with it', async () => {
    const orderFrom = async (now: number): Promise<number[]> => {
      queues.newQueue();
      await queues.jobs.redis.hset(`${queues.root}high:fairness`, 'now', now, 'base', 0);
      const ids = [...(await putHigh('a', 8, 1)), ...(await putHigh('b', 5, 3)), ...(await putHigh('c', 5, 2))];
      const order = await claimOneByOne(6, 1);
      ids.push(...(await putHigh('d', 4, 1)));
      order.push(...(await claimOneByOne(16, 1)));
      assert.deepEqual(await leftInRedis(), []);
      return order.map((id) => ids.indexOf(id));
    };
    const order = await orderFrom(1);
    assert.equal(new Set(order).size, 22);
    // As after a million jobs.
    for (let now = 1_310_710; now <= 1_310_720; now++) assert.deepEqual(await orderFrom(now), order, `from ${now}`);
  });

  test('workers of the release before claim them, too, and what they leave of the lane goes with the next claim', async () => {
    const others = await queues.put(3, { hasPriority, account: 'c' });
    const [a, b] = [await putHigh('a', 3), await putHigh('b', 2)];
    const { redis } = queues.jobs;
    // That release takes what has the lowest score, and knows nothing of lines.
    const [taken = '', , next = ''] = await redis.zpopmin(`${queues.keysPrefix}prioritized`, 2);
    assert.deepEqual([taken, next], [`job_${a[0]}`, `job_${b[0]}`]);
    assert.deepEqual(new Set(await claim(3, 1)), new Set([a[1], a[2], b[1]]));
    await putHigh('a', 2);
    await redis.zpopmin(`${queues.keysPrefix}prioritized`, 2);
    assert.deepEqual(await claim(9, 1), others);
    assert.deepEqual(await leftInRedis(), []);
  });

  test('a queue without jobs of low or high priority is asked for them by one command or two, and admission by none', async () => {
    const { redis } = queues.jobs;
    const callsSince = async (): Promise<Record<string, number>> =>
      Object.fromEntries(
        [...(await redis.info('commandstats')).matchAll(/^cmdstat_(\w+):calls=(\d+)/gm)].map(([, name, count]) => [
          name as string,
          Number(count),
        ]),
      );
    await queues.put(1);
    await redis.config('RESETSTAT');
    assert.equal((await claim(2)).length, 1);
    const alone = await callsSince();
    assert.deepEqual([alone.exists, alone.del, alone.zcard], [1, undefined, undefined]);
    await queues.put(1, { hasPriority });
    await claim(1);
    await queues.put(3);
    await redis.config('RESETSTAT');
    const [waiting, { highLines }] = [await queues.reader.waiting(), await queues.reader.progress()];
    assert.deepEqual([waiting, highLines.size], [3, 0]);
    assert.equal((await claim(2)).length, 2);
    const calls = await callsSince();
    assert.equal(calls.exists, 2);
    assert.deepEqual([calls.zcount, calls.lindex, calls.zrevrange], [undefined, undefined, 2]);
  });

  describe('that are parked', () => {
    const notDue = { waitMs: 500_000, intervalMs: 1 };

    async function park(id: string, account: string, more: object = {}): Promise<string> {
      const parked = new ParkedJobs(queues.capability, queues.redis.client, 0, highShare);
      const call = { id: `job_${id}`, token: 'claim', account, route, latestMs: 600_000, maxParked: 100, work: 1 };
      return (await parked.park({ ...call, ...notDue, ...more })).verdict;
    }

    async function releaseAll(count: number): Promise<string[]> {
      const parked = new ParkedJobs(queues.capability, queues.redis.client, 0, highShare);
      const ids: string[] = [];
      for (let index = 0; index < count; index++) {
        await parked.unpark(new Map([[route, 1]]));
        ids.push(...(await claim(10)));
      }
      return ids;
    }

    test('are released before others up to their share, wherever they were parked, and leave nothing', async () => {
      const others = await queues.put(3, { account: 'a' });
      const high = await putHigh('a', 9);
      assert.equal((await claim(20)).length, 12);
      for (const id of [...others, ...high]) assert.equal(await park(id, 'a'), 'parked');
      assert.equal(await queues.reader.parked(), 12);
      const order = await releaseAll(12);
      assert.deepEqual(
        order.filter((id) => high.includes(id)),
        high,
      );
      assert.deepEqual(
        others.map((id) => order.indexOf(id)),
        [4, 9, 11],
      );
      assert.deepEqual(await queues.jobs.redis.keys(`${queues.root}parked*`), []);
    });

    test('precede all of the queue once they are released, and are the first if they were released too early', async () => {
      const [other] = await queues.put(1, { account: 'b' });
      const high = await putHigh('a', 3);
      assert.equal((await claim(10)).length, 4);
      for (const id of high.slice(0, 2)) await park(id, 'a');
      await park(other as string, 'b');
      const queued = await putHigh('c', 1);
      const parked = new ParkedJobs(queues.capability, queues.redis.client, 0, highShare);
      await parked.unpark(new Map([[route, 1]]));
      assert.deepEqual(await claim(2), [high[0], queued[0]]);
      await park(high[2] as string, 'a');
      assert.equal(await park(high[0] as string, 'a'), 'parked');
      assert.deepEqual(await releaseAll(4), [...high, other]);
    });

    test('can be removed, and leave their line as it was if they would start too late', async () => {
      const ids = await putHigh('a', 3);
      await claim(3);
      const times = { waitMs: 10_000, intervalMs: 20_000, latestMs: 45_000 };
      assert.equal(await park(ids[0] as string, 'a', times), 'parked');
      assert.equal(await park(ids[1] as string, 'a', times), 'parked');
      assert.equal(await park(ids[2] as string, 'a', times), 'late');
      assert.equal(await queues.reader.parked(), 2);
      for (const id of ids.slice(0, 2)) assert.equal(await queues.queue.remove(id, true), true);
      assert.equal(await queues.reader.parked(), 0);
      assert.deepEqual(await queues.jobs.redis.keys(`${queues.root}parked:*:high*`), []);
    });
  });

  test('in whatever order jobs of all kinds are added, claimed, parked and removed, each is claimed once and nothing is left', async () => {
    const random = new SeededRandom(process.env.SLUICE_SOAK ? Date.now() : 5);
    const flex = { joinsAfterMs: 0, most: 1000, accountMost: 1000 };
    for (let round = 0; round < (process.env.SLUICE_SOAK ? 1000 : 50); round++) {
      queues.newQueue();
      const parked = new ParkedJobs(queues.capability, queues.redis.client, 0, highShare);
      const waiting = new Map<string, string>();
      const add = async (account: string): Promise<void> => {
        const kind = random.int(0, 3);
        const more = { account, work: random.int(1, 50) };
        if (kind === 0) {
          for (const id of await queues.put(1, { hasPriority: random.chance(0.7), ...more })) waiting.set(id, account);
          return;
        }
        const lane = kind === 1 ? 'flex' : 'high';
        const job = { ...queues.job({ account, lane }), request: '{}', work: more.work };
        const terms = lane === 'flex' ? { ...flex, joinsAfterMs: random.chance(0.5) ? 0 : 600_000 } : lane;
        assert.equal(await queues.queue.enqueue(job, false, undefined, [], terms), 'queued');
        waiting.set(job.id, account);
      };
      const take = async (): Promise<void> => {
        const [wanted, spare] = [random.int(0, 4), random.int(0, 2)];
        const terms = { spare, targetWaitMs: random.int(0, 1), highShare: random.chance(0.5) ? highShare : 1 };
        for (const id of await queues.claim(wanted, terms)) {
          const account = waiting.get(id);
          assert.ok(account !== undefined, `${id} is claimed once`);
          const place = { id: `job_${id}`, token: 'claim', account, route, latestMs: 600_000, maxParked: 100, work: 1 };
          const isParked = random.chance(0.3) && (await parked.park({ ...place, waitMs: 0, intervalMs: 0 }));
          if (!isParked) waiting.delete(id);
        }
        await parked.unpark(new Map([[route, random.int(0, 2)]]));
      };
      const removeOne = async (): Promise<void> => {
        const id = [...waiting.keys()][random.int(0, waiting.size - 1)] as string;
        assert.equal(await queues.queue.remove(id, random.chance(0.5)), true);
        waiting.delete(id);
      };
      for (let step = 0; step < 30; step++) {
        if (random.chance(0.5)) await add(`account ${random.int(0, 2)}`);
        else if (waiting.size > 0) await (random.chance(0.4) ? removeOne() : take());
      }
      while (waiting.size > 0) await (random.chance(0.2) ? removeOne() : take());
      const left = await queues.jobs.redis.keys(`${queues.root}*`);
      assert.deepEqual(
        left.filter((key) => /(high|flex|parked|lines?|finished|left)(:|$)|prioritized|wait$/.test(key)),
        [],
      );
      assert.equal(await queues.reader.waiting(), 0);
    }
  });
});

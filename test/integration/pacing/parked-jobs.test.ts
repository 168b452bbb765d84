import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { ApiError } from '../../../shared/errors.ts';
import { begin, finishWithError, withdrawAttempt } from '../../../shared/jobs/attempt.ts';
import { readJobState } from '../../../shared/jobs/job-state.ts';
import { ClaimedQueue } from '../../../shared/queue/claimed-queue.ts';
import { type ParkCall, ParkedJobs, type ParkReply } from '../../../shared/queue/parking/parked-jobs.ts';
import { ShardedQueue } from '../../../shared/queue/sharded-queue.ts';
import { jobKeys, queueRoot } from '../../../shared/redis/keys.ts';
import { eventually } from '../../support/eventually.ts';
import { QueueFixture } from '../../support/faults/queue-fixture.ts';

const route = 'vendor/model';

describe('parked jobs', () => {
  let queues: QueueFixture;
  let parked: ParkedJobs;
  before(async () => {
    queues = await QueueFixture.start();
  });
  after(() => queues?.stop());
  beforeEach(() => {
    queues.newQueue();
    parked = new ParkedJobs(queues.capability, queues.redis.client);
  });

  /** Claims so many jobs; returns their ids, and the route that each was parked for. */
  async function claim(wanted: number): Promise<{ ids: string[]; parkedFor: string[] }> {
    const call = { token: 'claim', wanted, lockMs: 60_000, workerId: '', targetWaitMs: 0, ended: [] };
    const { entries } = await new ClaimedQueue(queues.capability).claim(queues.redis.client, call);
    return { ids: entries.map(({ id }) => id.slice('job_'.length)), parkedFor: entries.map((each) => each.parkedFor) };
  }

  async function park(id: string, account = 'account', more: Partial<ParkCall> = {}): Promise<ParkReply> {
    const call = { id: `job_${id}`, token: 'claim', account, route, waitMs: 0, intervalMs: 0 };
    return await parked.park({ ...call, latestMs: 600_000, maxParked: 100, work: 1, ...more });
  }

  async function parkAll(ids: readonly string[], account: string, more: Partial<ParkCall> = {}): Promise<void> {
    for (const id of ids) assert.equal((await park(id, account, more)).verdict, 'parked');
  }

  /** Releases one job after the other, and claims each. */
  async function releaseAll(count: number): Promise<string[]> {
    const ids: string[] = [];
    for (let index = 0; index < count; index++) {
      await parked.unpark(one(route));
      ids.push(...(await claim(10)).ids);
    }
    return ids;
  }

  const one = (name: string) => new Map([[name, 1]]);

  /** Long enough that no job of the route is due. */
  const notDue = { waitMs: 500_000, intervalMs: 1 };

  test('parked jobs are released in turns of their accounts, whoever was parked first', async () => {
    const [many, few] = [await queues.put(4, { account: 'many' }), await queues.put(2, { account: 'few' })];
    assert.equal((await claim(10)).ids.length, 6);
    await parkAll(many, 'many', notDue);
    await parkAll(few, 'few', notDue);
    assert.equal(await queues.reader.parked(), 6);
    const released = await releaseAll(6);
    assert.deepEqual(released, [many[0], few[0], many[1], few[1], many[2], many[3]]);
    assert.deepEqual(await parked.unpark(), []);
    assert.equal(await queues.reader.parked(), 0);
  });

  test("parked jobs wait beside the queue, of low priority or not, and take nothing of their account's share of it", async () => {
    const [many, few] = [await queues.put(4, { account: 'many' }), await queues.put(2, { account: 'few' })];
    await claim(10);
    await parkAll(many.slice(0, 2), 'many', notDue);
    await parkAll(many.slice(2), 'many', { ...notDue, route: 'vendor/other' });
    await parkAll(few.slice(1), 'few', notDue);
    await parkAll(few.slice(0, 1), 'few', { ...notDue, lowMs: 60_000 });
    const { beside } = await queues.reader.progress();
    assert.deepEqual([...beside].sort(), [
      ['few', 2],
      ['many', 4],
    ]);
  });

  test('an account that parks many jobs leaves room in the line for those of others', async () => {
    const [many, few] = [await queues.put(12, { account: 'many' }), await queues.put(1, { account: 'few' })];
    await claim(20);
    const terms = { ...notDue, maxParked: 10, accountShare: 0.5 };
    const verdicts: string[] = [];
    for (const id of many) verdicts.push((await park(id, 'many', terms)).verdict);
    assert.equal((await park(few[0] as string, 'few', terms)).verdict, 'parked');
    assert.equal(verdicts.filter((verdict) => verdict === 'parked').length, 5);
    // Once its jobs leave, it has room again.
    await parked.unpark(one(route));
    assert.equal((await park(many[11] as string, 'many', terms)).verdict, 'parked');
  });

  test('a job that was released too early is the first of its route again', async () => {
    const ids = await queues.put(3);
    await claim(10);
    await parkAll(ids, 'account', notDue);
    assert.deepEqual(await releaseAll(1), [ids[0]]);
    assert.equal((await park(ids[0] as string, 'account', notDue)).verdict, 'parked');
    assert.deepEqual(await releaseAll(3), ids);
  });

  test('a job that was released for one route is the last of another route in which it waits next', async () => {
    const ids = await queues.put(3);
    await claim(10);
    await parkAll(ids.slice(0, 1), 'account', notDue);
    await parkAll(ids.slice(1), 'account', { ...notDue, route: 'other/model' });
    assert.deepEqual(await releaseAll(1), ids.slice(0, 1));
    await parkAll(ids.slice(0, 1), 'account', { ...notDue, route: 'other/model' });
    const released: string[] = [];
    for (let count = 0; count < 3; count++) {
      await parked.unpark(one('other/model'));
      released.push(...(await claim(10)).ids);
    }
    assert.deepEqual(released, [...ids.slice(1), ids[0]]);
  });

  test('the lines of routes that share a limit do not look for its capacity in step', async () => {
    const ids = await queues.put(20);
    await claim(100);
    for (const [index, id] of ids.entries()) await park(id, 'account', { route: `vendor/${index}` });
    await parked.unpark();
    assert.equal((await claim(100)).ids.length, 20);
    const early: number[] = [];
    for (const [index, id] of ids.entries()) {
      const { ms } = await park(id, 'account', { route: `vendor/${index}`, waitMs: 10_000, intervalMs: 500 });
      early.push(10_000 - ms);
    }
    // A call is reserved a second ahead: who comes earlier finds nothing.
    assert.ok(Math.min(...early) >= 600 && Math.max(...early) < 1000, String(early));
    assert.ok(Math.max(...early) - Math.min(...early) > 50, String(early));
  });

  test('a job that was released too early has its place again in a line that has filled up meanwhile', async () => {
    const ids = await queues.put(3);
    await claim(10);
    const terms = { ...notDue, maxParked: 2 };
    await parkAll(ids.slice(0, 2), 'account', terms);
    assert.deepEqual(await releaseAll(1), ids.slice(0, 1));
    await parkAll(ids.slice(2), 'account', terms);
    assert.equal((await park(ids[0] as string, 'account', terms)).verdict, 'parked');
    assert.deepEqual(await releaseAll(1), ids.slice(0, 1));
  });

  test('a job that was released too early is released again when there is capacity, not once it would have used it', async () => {
    const ids = await queues.put(2);
    await claim(10);
    await parkAll(ids, 'account', { waitMs: 0, intervalMs: 60_000 });
    await parked.unpark();
    assert.deepEqual((await claim(10)).ids, ids.slice(0, 1));
    // Another call came first.
    const { verdict, ms } = await park(ids[0] as string, 'account', {
      waitMs: 1600,
      intervalMs: 60_000,
      latestMs: 5000,
    });
    assert.equal(verdict, 'parked');
    assert.ok(ms <= 1000, `${ms} ms`);
  });

  test('a released job precedes all that wait in the queue, and is known to have been parked', async () => {
    const [first] = await queues.put(1);
    await claim(1);
    await parkAll([first as string], 'account', notDue);
    const others = await queues.put(2);
    await parked.unpark(one(route));
    assert.deepEqual(await claim(10), { ids: [first, ...others], parkedFor: [route, '', ''] });
  });

  test('a job whose place in the line starts after its deadline stays with its worker, and learns when it would start', async () => {
    const ids = await queues.put(4);
    await claim(10);
    const times = { waitMs: 10_000, intervalMs: 20_000, latestMs: 45_000 };
    await parkAll(ids.slice(0, 2), 'account', times);
    const late = await park(ids[2] as string, 'account', times);
    assert.equal(late.verdict, 'late');
    assert.ok(late.ms > 45_000 && late.ms <= 50_000, `${late.ms} ms`);
    assert.equal(await queues.jobs.redis.llen(`${queues.keysPrefix}active`), 2);
    // It has left no gap in the line of its account.
    await parkAll(ids.slice(3), 'account', { ...times, latestMs: 60_000 });
    assert.equal(await queues.reader.parked(), 3);
  });

  test('a large job holds up none of those before it in its line, and is not refused as if they were as large', async () => {
    const small = await queues.put(40, { account: 'small' });
    const [large, other] = await queues.put(2, { account: 'large' });
    await claim(100);
    await parkAll(small, 'small', { waitMs: 1500, intervalMs: 10 });
    // It takes a minute, and starts once forty jobs of 10 ms have started.
    const terms = { waitMs: 1500, intervalMs: 60_000, latestMs: 30_000 };
    assert.equal((await park(large as string, 'small', terms)).verdict, 'parked');
    // What follows it waits for that minute on average of all, not for one minute for each.
    assert.equal((await park(other as string, 'small', { ...terms, latestMs: 120_000 })).verdict, 'parked');
    const released: string[] = [];
    await eventually(async () => {
      await parked.unpark();
      released.push(...(await claim(100)).ids);
      assert.ok(released.length >= 40, `${released.length} are released`);
    });
    assert.deepEqual(released.slice(0, 40), small);
  });

  test('a job of low priority that has waited for spare capacity as long as it may waits as the others of its account do', async () => {
    const [low, others] = [await queues.put(2), await queues.put(40)];
    await claim(100);
    await parkAll(low.slice(0, 1), 'account', { ...notDue, lowMs: 1 });
    await parkAll(low.slice(1), 'account', { ...notDue, lowMs: 60_000 });
    await parkAll(others, 'account', notDue);
    const released = await releaseAll(42);
    assert.deepEqual(new Set(released), new Set([...low, ...others]));
    // The first of a line has its turn at once; then each waits for 16 others.
    assert.ok(released.indexOf(low[1] as string) < 2, `${released.indexOf(low[1] as string)}`);
    assert.equal(released.indexOf(low[0] as string), 41);
    assert.deepEqual(await queues.jobs.redis.keys(`sluice:{q-${queues.capability}}:parked*`), []);
  });

  test('each further job of low priority waits for sixteen others, and is expected to wait for all', async () => {
    const [low, others] = [await queues.put(3), await queues.put(40)];
    await claim(100);
    for (const [index, id] of low.entries()) await parkAll([id], 'account', { ...notDue, lowMs: 60_000 + index });
    await parkAll(others, 'account', notDue);
    const places = await Promise.all(low.map(async (id) => (await queues.reader.place(id))?.ahead));
    assert.deepEqual(places, [40, 41, 42]);
    const released = await releaseAll(43);
    const turns = low.map((id) => released.indexOf(id));
    assert.ok((turns[1] as number) >= 16 && (turns[2] as number) >= 32, `${turns}`);
  });

  test('a job of low priority without a known work moves up as one, and stops no release', async () => {
    const ids = await queues.put(2);
    await claim(10);
    await parkAll(ids, 'account', { ...notDue, lowMs: 0 });
    await queues.jobs.redis.hdel(`${queues.keysPrefix}job_${ids[1]}`, 'work');
    assert.deepEqual(new Set(await releaseAll(2)), new Set(ids));
  });

  test('of many jobs of low priority whose time has come some at a time move up, whatever their routes, and none is lost', async () => {
    const routes = [route, 'other/model'] as const;
    const ids = await queues.put(140);
    await claim(200);
    for (const [index, name] of routes.entries())
      await parkAll(ids.slice(70 * index, 70 * (index + 1)), 'account', { ...notDue, route: name, lowMs: 1 });
    const { redis } = queues.jobs;
    const lowKey = (name: string) => `sluice:{q-${queues.capability}}:parked:${name}:low`;
    const left = async () =>
      (await Promise.all(routes.map((name) => redis.zcard(lowKey(name))))).reduce((a, b) => a + b);
    const both = new Map(routes.map((name) => [name, 1]));
    await parked.unpark(both);
    assert.equal(await left(), 40);
    await parked.unpark(both);
    assert.equal(await left(), 0);
    const released: string[] = (await claim(100)).ids;
    for (let count = 2; count < 70; count++) {
      await parked.unpark(both);
      released.push(...(await claim(100)).ids);
    }
    assert.deepEqual(released.sort(), [...ids].sort());
    assert.deepEqual(await redis.keys(`sluice:{q-${queues.capability}}:parked*`), []);
  });

  test('jobs of low priority of many accounts count in the place of another job as they are released before it', async () => {
    const accounts = Array.from({ length: 20 }, (_, index) => `low${index}`);
    const low = await Promise.all(accounts.map((account) => queues.put(3, { account })));
    const others = await queues.put(20);
    await claim(100);
    const terms = { waitMs: 10_000, intervalMs: 1000 };
    for (const [index, account] of accounts.entries())
      await parkAll(low[index] as string[], account, { ...terms, lowMs: 600_000 });
    await parkAll(others.slice(0, 9), 'account', terms);
    const tenth = others[9] as string;
    // It precedes each account's second job of low priority.
    assert.equal((await park(tenth, 'account', { ...terms, latestMs: 47_000 })).verdict, 'parked');
    await parkAll(others.slice(10), 'account', terms);
    const places = await Promise.all(others.map(async (id) => (await queues.reader.place(id))?.ahead));
    assert.equal(places[9], 29);
    assert.equal(places[19], 59);
    const quoted = await queues.reader.line(route, 'account', false);
    assert.equal(quoted.aheadMs, 60_000);
    const released = await releaseAll(80);
    assert.equal(released.indexOf(tenth), 29);
    const last = released.indexOf(others[19] as string);
    assert.ok(last > 29 && last <= 59, `${last}`);
  });

  test('a job of low priority that is released, or removed while it is parked, leaves nothing', async () => {
    const { redis } = queues.jobs;
    const root = `sluice:{q-${queues.capability}}:parked`;
    const ids = await queues.put(3);
    await claim(10);
    await parkAll(ids, 'account', { ...notDue, lowMs: 60_000 });
    const [released] = await releaseAll(1);
    const [removed, last] = ids.filter((id) => id !== released) as [string, string];
    assert.equal(await queues.queue.remove(removed, true), true);
    assert.deepEqual(await redis.zrange(`${root}:${route}:low`, '0', '-1'), [`job_${last}`]);
    await releaseAll(1);
    assert.deepEqual(await redis.keys(`${root}*`), []);
  });

  test('in a queue with shards as many jobs are expected to wait in each', async () => {
    const ids = await queues.put(3);
    await claim(10);
    const terms = { waitMs: 10_000, intervalMs: 10_000, shards: 3 };
    await parkAll(ids.slice(0, 2), 'account', terms);
    // In its shard it is the third, of all the seventh.
    const late = await park(ids[2] as string, 'account', { ...terms, latestMs: 60_000 });
    assert.equal(late.verdict, 'late');
    assert.ok(late.ms > 65_000 && late.ms <= 70_000, `${late.ms} ms`);
    const { ahead, startsInMs = 0 } = (await queues.reader.place(ids[1] as string, 1, 3)) ?? {};
    assert.equal(ahead, 3);
    assert.ok(startsInMs > 35_000 && startsInMs <= 40_000, `${startsInMs} ms`);
  });

  test('lines in two shards that wait for the same time keep a new job waiting for that once, and for the jobs of both', async () => {
    const shards = new ShardedQueue(queues.capability, queues.redis.client, { count: 2 });
    try {
      assert.equal(await shards.lineMs(route, 'account', false), 0);
      for (const shard of [0, 1]) {
        const root = `${queueRoot(queues.capability, shard)}parked`;
        const { redis } = queues.jobs;
        await redis.zadd(root, Date.now() + 100_000, route);
        await redis.hset(`${root}:${route}:fairness`, 'interval', 10_000);
        await redis.zadd(`${root}:${route}:lines`, 1, 'account');
      }
      const ms = await shards.lineMs(route, 'account', false);
      assert.ok(ms > 110_000 && ms <= 120_000, `${ms} ms`);
    } finally {
      await shards.close();
    }
  });

  test('no more jobs of a route are parked than allowed', async () => {
    const ids = await queues.put(3);
    await claim(10);
    await parkAll(ids.slice(0, 2), 'account', notDue);
    assert.equal((await park(ids[2] as string, 'account', { ...notDue, maxParked: 2 })).verdict, 'late');
  });

  test('a parked job is removed for good, and the jobs of another route stay', async () => {
    const ids = await queues.put(2);
    await claim(10);
    await parkAll([ids[0] as string], 'account', notDue);
    await parkAll([ids[1] as string], 'account', { ...notDue, route: 'other/model' });
    assert.equal(await queues.queue.remove(ids[0] as string, true), true);
    assert.equal(await queues.queue.has(ids[0] as string), false);
    assert.equal(await queues.reader.parked(), 1);
    const left = await parked.unpark(one(route));
    assert.deepEqual(
      left.map((each) => [each.route, each.waiting]),
      [['other/model', 1]],
    );
    assert.deepEqual((await claim(10)).ids, []);
    await parked.unpark(one('other/model'));
    assert.deepEqual((await claim(10)).ids, [ids[1]]);
  });

  test('a job that is refused leaves nothing of the line in which it would have been the first', async () => {
    const [id] = await queues.put(1);
    await claim(1);
    const name = 'vendor/a-model-of-the-caller';
    const { verdict } = await park(id as string, 'account', { route: name, waitMs: 250, latestMs: 400 });
    assert.equal(verdict, 'late');
    assert.deepEqual(await queues.jobs.redis.keys(`*${name}*`), []);
  });

  test('a parked job has a place, and a time when it is expected to start, by the line of its route', async () => {
    const ids = await queues.put(3);
    await claim(10);
    await parkAll(ids, 'account', { waitMs: 500_000, intervalMs: 20_000 });
    await queues.put(5);
    for (const [index, id] of ids.entries()) {
      const { ahead, startsInMs = 0 } = (await queues.reader.place(id)) ?? {};
      assert.equal(ahead, index);
      const expectedMs = 499_400 + 20_000 * index;
      assert.ok(startsInMs > expectedMs - 10_000 && startsInMs <= expectedMs, `${startsInMs} ms`);
    }
    const [first] = ids as [string];
    await parked.unpark(one(route));
    assert.equal(await queues.reader.position(first), 0);
  });

  test('jobs that were parked while the clock of Redis was ahead are released once that is put right', async () => {
    const ids = await queues.put(3);
    const [last] = ids.splice(2) as [string];
    await claim(10);
    await parkAll(ids, 'account', { waitMs: 5000, intervalMs: 20_000 });
    const routes = `${queueRoot(queues.capability)}parked`;
    const spoil = async (): Promise<void> => {
      const later = Date.now() + 90 * 86_400_000;
      await queues.jobs.redis.hset(`${routes}:${route}:fairness`, 'at', later);
      await queues.jobs.redis.zadd(routes, later + 5000, route);
    };
    await spoil();
    assert.deepEqual(
      (await parked.unpark()).map(({ nextMs, waiting }) => [nextMs, waiting]),
      [[0, 2]],
    );
    await parked.unpark();
    assert.deepEqual((await claim(10)).ids, [ids[0]]);
    await spoil();
    const { verdict, ms } = await park(last, 'account', { waitMs: undefined, intervalMs: 20_000 });
    assert.deepEqual([verdict, ms], ['parked', 0]);
    await parked.unpark();
    assert.deepEqual((await claim(10)).ids, [ids[1]]);
  });

  test('a claim that was lost parks nothing', async () => {
    const [id] = await queues.put(1);
    await claim(1);
    assert.equal((await park(id as string, 'account', { token: 'another' })).verdict, 'lost');
    assert.equal(await queues.reader.parked(), 0);
  });

  test('a withdrawn attempt leaves its job queued: what may not run twice may run, and a cancelled one has not begun', async () => {
    const { redis } = queues.jobs;
    const job = await queues.jobs.create();
    const call = { jobId: job.id, workerId: 'worker', repeatable: false };
    const first = await begin(redis, { ...call, claim: 'one' });
    assert.equal(first.verdict, 'run');
    const withdraw = { jobId: job.id, attempt: 1, hasCalled: false };
    assert.equal(await withdrawAttempt(redis, withdraw), 'withdrawn');
    // A repeat of the call counts once.
    assert.equal(await withdrawAttempt(redis, withdraw), 'withdrawn');
    assert.equal((await readJobState(redis, job.id))?.attempt, 0);
    assert.equal(await redis.hget(jobKeys.state(job.id), 'released'), '1');
    const second = await begin(redis, { ...call, claim: 'two' });
    assert.deepEqual(second, { verdict: 'run', attempt: 2, lastSeq: 0, withdrawn: 1 });
    assert.equal(await withdrawAttempt(redis, withdraw), 'fenced');
    assert.equal((await readJobState(redis, job.id))?.attempt, 1);
    assert.equal(await withdrawAttempt(redis, { ...withdraw, attempt: 2 }), 'withdrawn');
    const end = { jobId: job.id, retentionMs: 0, isCluster: false };
    const { began, isRunning } = await finishWithError(redis, end, new ApiError('cancelled', 'The caller left.'));
    assert.deepEqual([began, isRunning], [false, false]);
    assert.equal(await withdrawAttempt(redis, { ...withdraw, attempt: 2 }), 'ended');
  });
});

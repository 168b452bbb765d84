import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { Enqueued, FlexTerms } from '../../../shared/queue/queue.ts';
import { eventually } from '../../support/eventually.ts';
import { QueueFixture } from '../../support/faults/queue-fixture.ts';
import { loadProduct } from '../../support/gateway.ts';
import { SeededRandom } from '../../support/seeded-random.ts';

const { ClaimedQueue } =
  await loadProduct<typeof import('../../../shared/queue/claimed-queue.ts')>('shared/queue/claimed-queue');

const terms: FlexTerms = { joinsAfterMs: 600_000, most: 1000, accountMost: 1000 };
const hasPriority = true;

describe('jobs of low priority in a queue', () => {
  let queues: QueueFixture;
  before(async () => {
    queues = await QueueFixture.start();
  });
  after(() => queues?.stop());
  beforeEach(() => queues.newQueue());

  async function putOne(account: string, more: Partial<FlexTerms> = {}): Promise<{ id: string; verdict: Enqueued }> {
    const job = { ...queues.job({ account, lane: 'flex' }), request: '{}' };
    return { id: job.id, verdict: await queues.queue.enqueue(job, false, undefined, [], { ...terms, ...more }) };
  }

  async function putFlex(account: string, count: number): Promise<string[]> {
    const ids: string[] = [];
    for (let index = 0; index < count; index++) {
      const { id, verdict } = await putOne(account);
      assert.equal(verdict, 'queued');
      ids.push(id);
    }
    return ids;
  }

  /** One claim; returns the jobs in the order in which they would run. */
  async function claim(wanted: number, spare = wanted): Promise<string[]> {
    return await queues.claim(wanted, { spare });
  }

  /** Ends jobs one after the other, each once it runs. Without all of them a worker would wait at its end. */
  async function endEach(ends: (() => void)[], count: number): Promise<void> {
    try {
      for (let ended = 0; ended < count; ended++) {
        await eventually(() => assert.ok(ends.length > ended, `${ended} have ended`));
        ends[ended]?.();
      }
    } catch (error) {
      for (const end of ends) end();
      throw error;
    }
  }

  const leftInRedis = async () => await queues.jobs.redis.keys(`${queues.root}flex*`);

  test('jobs of low priority are claimed behind all others, and accounts take turns', async () => {
    const [a, b] = [await putFlex('a', 3), await putFlex('b', 2)];
    const withPriority = await queues.put(2, { hasPriority, account: 'c' });
    const others = await queues.put(2, { account: 'd' });
    assert.deepEqual(await claim(7), [...others, ...withPriority, a[0], b[0], a[1]]);
    assert.deepEqual(await claim(7), [b[1], a[2]]);
    assert.deepEqual(await leftInRedis(), []);
  });

  test('a claim takes no more jobs of low priority than its worker has slots to spare', async () => {
    const low = await putFlex('a', 5);
    assert.deepEqual(await claim(4, 0), []);
    assert.deepEqual(await claim(4, 3), low.slice(0, 3));
    assert.equal(await queues.reader.flex(), 2);
    assert.equal(await queues.reader.waiting(), 0, 'they are not among those that wait');
  });

  test('a job of low priority that has waited too long joins the queue, where it is in turn', async () => {
    const { id: first } = await putOne('a', { joinsAfterMs: 0 });
    const [second] = await putFlex('a', 1);
    const others = await queues.put(2, { hasPriority, account: 'b' });
    assert.deepEqual(await claim(0), []);
    assert.equal(await queues.reader.flex(), 1);
    assert.deepEqual(await claim(2, 0), [others[0], first], 'beside the first of another account');
    assert.deepEqual(await claim(3), [others[1], second]);
    assert.deepEqual(await leftInRedis(), []);
  });

  test('too many jobs of low priority, in all or of one account, are refused, and leave nothing', async () => {
    assert.equal((await putOne('a', { most: 2 })).verdict, 'queued');
    assert.equal((await putOne('b', { most: 2 })).verdict, 'queued');
    const refused = [await putOne('c', { most: 2 }), await putOne('a', { accountMost: 1 })];
    assert.deepEqual(
      refused.map(({ verdict }) => verdict),
      ['full', 'share'],
    );
    for (const { id } of refused) assert.equal(await queues.queue.has(id), false);
    assert.equal((await putOne('a', { accountMost: 2 })).verdict, 'queued');
    assert.equal(await queues.reader.flex(), 3);
  });

  test('a repeated enqueueing of a job of low priority changes nothing', async () => {
    const job = { ...queues.job({ lane: 'flex' }), request: '{}' };
    const enqueue = () => queues.queue.enqueue(job, false, undefined, [], terms);
    assert.deepEqual([await enqueue(), await enqueue()], ['queued', 'there']);
    assert.deepEqual(await claim(3), [job.id]);
    assert.equal(await enqueue(), 'there', 'claimed');
    assert.equal(await queues.reader.flex(), 0);
  });

  test('the place of a job of low priority is behind all others, and it can be removed until it is claimed', async () => {
    const low = await putFlex('a', 3);
    await queues.put(2, { hasPriority, account: 'b' });
    await queues.put(1);
    const places = await Promise.all(low.map((id) => queues.reader.position(id)));
    assert.deepEqual(places, [3, 4, 5]);
    assert.equal(await queues.queue.remove(low[1] as string, true), true);
    assert.equal(await queues.queue.has(low[1] as string), false);
    assert.equal(await queues.reader.position(low[2] as string), 4);
    assert.equal((await claim(4)).at(-1), low[0]);
    assert.equal(await queues.queue.remove(low[0] as string), false, 'claimed');
    assert.equal(await queues.queue.remove(low[2] as string), true);
    assert.deepEqual(await leftInRedis(), []);
  });

  test('a worker leaves slots free of jobs of low priority, and goes on with them as they end', async () => {
    const low = await putFlex('a', 30);
    const ends: (() => void)[] = [];
    const ran: string[] = [];
    queues.consume(
      async ({ job }) => {
        ran.push(job.id);
        await new Promise<void>((resolve) => ends.push(resolve));
        return 'done';
      },
      { concurrency: 10 },
    );
    await eventually(() => assert.deepEqual(ran, low.slice(0, 9)));
    const [other] = await queues.put(1);
    await eventually(() => assert.equal(ran[9], other));
    await endEach(ends, 31);
    await eventually(async () => assert.deepEqual(await queues.leftovers(), []));
    assert.deepEqual(new Set(ran), new Set([...low, other]));
    assert.deepEqual(await leftInRedis(), []);
  });

  test('workers without slots to spare do not wake each other for jobs of low priority', async () => {
    await putFlex('a', 10);
    const ends: (() => void)[] = [];
    const run = async (): Promise<'done'> => {
      await new Promise<void>((resolve) => ends.push(resolve));
      return 'done';
    };
    for (const _ of [1, 2]) queues.consume(run, { concurrency: 2 });
    await eventually(() => assert.equal(ends.length, 2));
    const { redis } = queues.jobs;
    await redis.config('RESETSTAT');
    await new Promise((resolve) => setTimeout(resolve, 500));
    const claims = Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0);
    assert.ok(claims < 20, `${claims} calls of scripts`);
    await endEach(ends, 10);
  });

  test('a job of low priority whose worker is lost returns to the queue, and runs once more', async () => {
    const [id] = await putFlex('a', 1);
    assert.deepEqual(await claim(1), [id]);
    await queues.jobs.redis.del(`${queues.keysPrefix}job_${id}:lock`);
    assert.equal(await new ClaimedQueue(queues.capability).returnStalled(queues.redis.client, 1, 3), 1);
    assert.equal(await queues.reader.position(id as string), 0);
    assert.deepEqual(await claim(1, 0), [id]);
  });

  test('in whatever order jobs of both kinds are added, claimed and removed, each is claimed once and nothing is left', async () => {
    const random = new SeededRandom(process.env.SLUICE_SOAK ? Date.now() : 3);
    for (let round = 0; round < (process.env.SLUICE_SOAK ? 1000 : 40); round++) {
      queues.newQueue();
      const waiting = new Set<string>();
      const takeSome = async (): Promise<void> => {
        const id = [...waiting][random.int(0, waiting.size - 1)] as string;
        if (random.chance(0.4)) {
          assert.equal(await queues.queue.remove(id, random.chance(0.5)), true);
          waiting.delete(id);
        } else
          for (const claimed of await claim(random.int(0, 3), random.int(0, 2))) assert.ok(waiting.delete(claimed));
      };
      for (let step = 0; step < 25; step++) {
        const account = `account ${random.int(0, 2)}`;
        const kind = random.int(0, 2);
        if (kind === 0) {
          waiting.add((await putOne(account, { joinsAfterMs: random.chance(0.5) ? 0 : 600_000 })).id);
        } else if (kind === 1) {
          const job = { hasPriority: random.chance(0.7), account, work: random.int(1, 20) };
          for (const id of await queues.put(1, job)) waiting.add(id);
        } else if (waiting.size > 0) await takeSome();
      }
      while (waiting.size > 0) await takeSome();
      assert.deepEqual(await leftInRedis(), []);
      assert.equal(await queues.reader.waiting(), 0);
    }
  });
});

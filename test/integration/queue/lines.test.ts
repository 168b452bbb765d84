import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { QueueEntry } from '../../../shared/queue/claimed-queue.ts';
import { QueueFixture } from '../../support/faults/queue-fixture.ts';
import { loadProduct } from '../../support/gateway.ts';
import { SeededRandom } from '../../support/seeded-random.ts';

const { ClaimedQueue } =
  await loadProduct<typeof import('../../../shared/queue/claimed-queue.ts')>('shared/queue/claimed-queue');

const isSoak = Boolean(process.env.SLUICE_SOAK);
/** Far longer than a test takes: what waits longer is made to. */
const targetMs = 600_000;
const hasPriority = true;

describe('lines of accounts in a queue', () => {
  let queues: QueueFixture;
  before(async () => {
    queues = await QueueFixture.start();
  });
  after(() => queues?.stop());
  beforeEach(() => queues.newQueue());

  /** Claims so many jobs, one by one or in one call; returns their ids in the order in which they would run. */
  async function claim(count: number, { wanted = 1, targetWaitMs = targetMs } = {}): Promise<string[]> {
    const queue = new ClaimedQueue(queues.capability);
    const claimed: QueueEntry[] = [];
    while (claimed.length < count) {
      const call = { token: 'claim', wanted, lockMs: 60_000, workerId: '', targetWaitMs, ended: [] };
      const { entries } = await queue.claim(queues.redis.client, call);
      if (entries.length === 0) break;
      claimed.push(...entries);
    }
    return claimed.map(({ id }) => id.slice('job_'.length));
  }

  async function put(account: string, count: number): Promise<string[]> {
    return await queues.put(count, { hasPriority, account });
  }

  async function remove(ids: readonly string[], isGivenUp = false): Promise<void> {
    const removed = await Promise.all(ids.map((id) => queues.queue.remove(id, isGivenUp)));
    assert.ok(removed.every(Boolean));
  }

  const lines = async () => Object.fromEntries((await queues.reader.progress()).lines);
  const lineKey = (account: string) => `${queues.root}line:${account}`;

  /** Makes waiting jobs older than they are. */
  async function age(account: string, ids: readonly string[], byMs: number): Promise<void> {
    for (const id of ids) await queues.jobs.redis.zincrby(lineKey(account), -1000 * byMs, `job_${id}`);
  }

  test('accounts with waiting jobs are served in rotation, each in its own order', async () => {
    const [a, b, c] = [await put('a', 4), await put('b', 2), await put('c', 1)];
    assert.deepEqual(await lines(), { a: 4, b: 2, c: 1 });
    assert.deepEqual(await claim(3), [a[0], b[0], c[0]]);
    assert.deepEqual(await lines(), { a: 3, b: 1 });
    assert.deepEqual(await claim(4), [a[1], b[1], a[2], a[3]]);
    assert.deepEqual(await lines(), {});
    assert.deepEqual(await queues.jobs.redis.keys(`${queues.root}l*`), []);
  });

  test('one call claims in the same rotation as many calls', async () => {
    const [a, b] = [await put('a', 3), await put('b', 3)];
    assert.deepEqual(await claim(6, { wanted: 6 }), [a[0], b[0], a[1], b[1], a[2], b[2]]);
  });

  test('jobs that leave unserved do not set back the jobs behind them, nor those that come later', async () => {
    const burst = await put('a', 400);
    const behind = await put('a', 5);
    const b = await put('b', 10);
    await remove(burst);
    const later = await put('a', 2);
    const a = [...behind, ...later];
    assert.deepEqual(await lines(), { a: 7, b: 10 });
    assert.deepEqual(
      new Set((await claim(10)).slice(0, 10)),
      new Set([...a.slice(0, 5), ...b.slice(0, 5)]),
      'as many of each',
    );
    const rest = await claim(7);
    assert.deepEqual(new Set(rest.slice(0, 4)), new Set([a[5], b[5], a[6], b[6]]));
    assert.deepEqual(rest.slice(4), b.slice(7));
  });

  test('a line keeps its order when jobs in its middle leave', async () => {
    const a = await put('a', 9);
    await remove([a[1] as string, a[2] as string, a[4] as string, a[8] as string]);
    assert.deepEqual(await claim(5), [a[0], a[3], a[5], a[6], a[7]]);
  });

  test('jobs that an account adds and removes do not move it before its turn', async () => {
    const [, b] = [await put('a', 1), await put('b', 3)];
    await claim(2);
    for (let count = 0; count < 20; count++) await remove(await put('a', 3));
    const [next] = await put('a', 1);
    assert.deepEqual(await claim(3), [b[1], next, b[2]]);
  });

  test('a line of thousands closes up in steps, and ends where its account is served as often as others', async () => {
    const many = await put('a', 2600);
    const b = await put('b', 30);
    await remove(many.slice(0, 2500));
    const order = await claim(60);
    assert.deepEqual(
      order.filter((id) => b.includes(id)),
      b,
    );
    assert.equal(order.filter((id) => many.includes(id)).length, 30);
  });

  test('the oldest jobs run first, however long they wait, while no caller of the account gives up', async () => {
    const a = await put('a', 5);
    await age('a', a, 3 * targetMs);
    await remove([a[0] as string]);
    assert.deepEqual(await claim(4), a.slice(1));
  });

  test('the newest jobs run first while the oldest waits beyond the target and callers give up', async () => {
    const a = await put('a', 6);
    const b = await put('b', 3);
    await age('a', a.slice(0, 4), 2 * targetMs);
    await remove([a[0] as string], true);
    const first = await claim(4);
    assert.deepEqual(
      first.filter((id) => !b.includes(id)),
      [a[5], a[4]],
    );
    assert.deepEqual(
      first.filter((id) => b.includes(id)),
      b.slice(0, 2),
      'the other account is served in order',
    );
    const newest = await put('a', 1);
    const rest = await claim(5);
    assert.deepEqual(
      rest.filter((id) => !b.includes(id)),
      [newest[0], a[3], a[2], a[1]],
    );
    assert.deepEqual(await lines(), {});
  });

  test('newest-first ends once the oldest waits no longer than the target', async () => {
    const a = await put('a', 5);
    await age('a', a.slice(0, 1), 2 * targetMs);
    await remove([a[0] as string], true);
    assert.deepEqual(await claim(4), a.slice(1));
  });

  test('newest-first ends some time after callers have given up', async () => {
    const a = await put('a', 4);
    await age('a', a, 2 * targetMs);
    await remove([a[0] as string], true);
    assert.deepEqual(await claim(1), [a[3]]);
    const leftKey = `${queues.root}left`;
    await queues.jobs.redis.hincrby(leftKey, 'a', -3 * targetMs);
    assert.deepEqual(await claim(2), [a[1], a[2]]);
  });

  test('after newest-first an account is as far behind others as it has jobs', async () => {
    const a = await put('a', 6);
    await age('a', a, 2 * targetMs);
    await remove([a[0] as string], true);
    assert.deepEqual(await claim(2), [a[5], a[4]]);
    await queues.jobs.redis.del(`${queues.root}left`);
    const next = await put('a', 1);
    const b = await put('b', 4);
    const order = await claim(8);
    assert.deepEqual(
      order.filter((id) => !b.includes(id)),
      [a[1], a[2], a[3], ...next],
    );
    assert.deepEqual(
      order.filter((id) => b.includes(id)),
      b,
    );
    assert.ok(order.indexOf(b[3] as string) >= 6, 'neither account goes before the other');
  });

  test('jobs that another tool has taken out of the queue do not count in their line for long', async () => {
    const a = await put('a', 20);
    for (const id of a.slice(0, 19)) await (await (await queues.queue.bull()).getJob(`job_${id}`))?.remove();
    const next = await put('a', 200);
    const b = await put('b', 3);
    // The last of the additions that have set the number.
    assert.deepEqual(await lines(), { a: 201, b: 3 });
    const order = await claim(6);
    assert.deepEqual(new Set(order), new Set([a[19], ...next.slice(0, 2), ...b]));
    assert.deepEqual(await claim(198), next.slice(2));
    assert.deepEqual(await lines(), {});
  });

  test('accounts get shares of the work by their weights, whatever the sizes of their jobs', async () => {
    const weights = { a: 1, b: 2, c: 4 };
    const [total, sizes] = [isSoak ? 40_000 : 1500, [1, 100, 10, 37, 3]];
    const workOf = new Map<string, { account: string; work: number }>();
    const queued = { a: 0, b: 0, c: 0 };
    // Keeps each account's line from running empty. Accounts have the sizes in different orders.
    const fill = async (account: keyof typeof weights): Promise<void> => {
      const index = queued[account]++;
      const work = sizes[(index * (['a', 'b', 'c'].indexOf(account) + 1)) % sizes.length] as number;
      const [id] = await queues.put(1, { hasPriority, account, work: work / weights[account] });
      workOf.set(id as string, { account, work });
    };
    for (const account of ['a', 'b', 'c'] as const) for (let count = 0; count < 20; count++) await fill(account);
    const served = { a: 0, b: 0, c: 0 };
    for (let count = 0; count < total; count++) {
      const [id] = await claim(1);
      const { account, work } = workOf.get(id as string) as { account: keyof typeof weights; work: number };
      served[account] += work;
      await fill(account);
    }
    const all = served.a + served.b + served.c;
    for (const [account, weight] of Object.entries(weights)) {
      const share = served[account as keyof typeof served] / all / (weight / 7);
      assert.ok(share > 0.95 && share < 1.05, `${account}: ${share.toFixed(3)} of its share`);
    }
  });

  test('an account of large jobs lets as much work of small ones pass, also once it was served alone', async () => {
    const large = await queues.put(3, { hasPriority, account: 'large', work: 10 });
    assert.deepEqual(await claim(1), [large[0]]);
    const small = await queues.put(30, { hasPriority, account: 'small', work: 1 });
    assert.deepEqual(await claim(22), [...small.slice(0, 10), large[1], ...small.slice(10, 20), large[2]].slice(0, 22));
  });

  test('removing the first job of a line gives the next one its place, and costs the account nothing', async () => {
    const large = await queues.put(2, { hasPriority, account: 'large', work: 50 });
    const small = await put('small', 3);
    await remove([large[0] as string]);
    assert.deepEqual((await claim(2)).sort(), [large[1], small[0]].sort());
    const next = await put('large', 1);
    assert.deepEqual(await claim(3), [small[1], small[2], next[0]], 'what was served is owed');
  });

  test('work that is no number, or out of bounds, neither stops a queue nor moves it out of its range', async () => {
    const values = ['x', '-5', '0', 'nan', 'inf', '1e300'];
    for (const work of values) {
      const [id] = await put(`of ${work}`, 3);
      await queues.jobs.redis.hset(`${queues.keysPrefix}job_${id}`, 'work', work);
    }
    assert.equal((await claim(3 * values.length)).length, 3 * values.length);
    const now = Number(await queues.jobs.redis.hget(queues.clockKey, 'now'));
    assert.ok(now > 0 && now < 10_000, `${now}`);
  });

  test("a line whose first job a worker of the release before has claimed gets a start tag by its account's next job", async () => {
    const [a, b] = [await put('a', 3), await put('b', 3)];
    // That release takes the job out of the queue and out of its line, and does nothing for the next one.
    const { redis } = queues.jobs;
    await redis.zrem(`${queues.keysPrefix}prioritized`, `job_${a[0]}`);
    await redis.zrem(lineKey('a'), `job_${a[0]}`);
    const next = await put('a', 1);
    const order = await claim(6);
    assert.deepEqual(new Set(order.slice(0, 2)), new Set([a[1], b[0]]));
    assert.deepEqual(
      order.filter((id) => !b.includes(id)),
      [a[1], a[2], ...next],
    );
  });

  test('in whatever order jobs are added, claimed and removed, each is claimed once, and no line is left', async () => {
    const random = new SeededRandom(isSoak ? Date.now() : 7);
    const below = (limit: number): number => Math.floor(random.next() * limit);
    for (let round = 0; round < (isSoak ? 2000 : 60); round++) {
      queues.newQueue();
      const waiting = new Set<string>();
      const takeOne = async (): Promise<void> => {
        const id = [...waiting][below(waiting.size)] as string;
        if (below(2) === 0) await remove([id], below(2) === 0);
        else
          for (const claimed of await claim(1, { targetWaitMs: below(2) })) assert.ok(waiting.delete(claimed), claimed);
        if (!(await queues.queue.has(id))) waiting.delete(id);
      };
      for (let step = 0; step < 30; step++) {
        if (below(2) === 0) {
          const job = { hasPriority, account: `account ${below(3)}`, work: 1 + below(50) };
          for (const id of await queues.put(1 + below(3), job)) waiting.add(id);
        } else if (waiting.size > 0) await takeOne();
      }
      while (waiting.size > 0) await takeOne();
      assert.deepEqual(await queues.jobs.redis.keys(`${queues.root}[fl]i*`), []);
      assert.equal(await queues.reader.prioritized(), 0);
    }
  });

  test('the place of a job counts those of each line that are served before it', async () => {
    const [a, b] = [await put('a', 5), await put('b', 2)];
    const place = async (id: string | undefined) => await queues.reader.position(id as string);
    assert.deepEqual(await Promise.all(a.map(place)), [0, 3, 4, 5, 6]);
    assert.deepEqual(await Promise.all(b.map(place)), [1, 3]);
    await queues.put(3);
    assert.equal(await place(a[0]), 3);
    await claim(4);
    assert.equal(await place(a[0]), undefined);
  });

  test('a job of the previous release, which is in no line, runs at its own priority', async () => {
    const a = await put('a', 2);
    const old = queues.job();
    await (await queues.queue.bull()).add('job', { ...old, request: '{}' }, { jobId: `job_${old.id}`, priority: 1 });
    assert.deepEqual(await claim(3), [a[0], old.id, a[1]]);
  });

  test('a claimed job is not removed', async () => {
    const a = await put('a', 2);
    await claim(1);
    assert.equal(await queues.queue.remove(a[0] as string), false, 'claimed');
    assert.deepEqual(await lines(), { a: 1 });
    assert.deepEqual(await claim(1), [a[1]]);
  });

  test('what is claimed while others wait is counted', async () => {
    await put('a', 3);
    await queues.put(3);
    const counted = async () => (await queues.reader.progress()).claimed;
    await claim(2, { wanted: 2 });
    assert.equal(await counted(), 2);
    await claim(4);
    assert.equal(await counted(), 6);
    await queues.put(1);
    await claim(1);
    assert.equal(await counted(), 6, 'a queue that flows costs nothing');
  });
});

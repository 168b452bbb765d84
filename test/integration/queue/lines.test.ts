import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { QueueEntry } from '../../../shared/queue/claimed-queue.ts';
import { QueueFixture } from '../../support/faults/queue-fixture.ts';
import { loadProduct } from '../../support/gateway.ts';

const { ClaimedQueue } =
  await loadProduct<typeof import('../../../shared/queue/claimed-queue.ts')>('shared/queue/claimed-queue');

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

  const lines = async () => Object.fromEntries((await queues.queue.progress()).lines);
  const lineKey = (account: string) => `${queues.clockKey.replace(/fairness$/, '')}line:${account}`;

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
    assert.deepEqual(await queues.jobs.redis.keys(`${queues.clockKey.replace(/fairness$/, '')}l*`), []);
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
    const leftKey = queues.clockKey.replace(/fairness$/, 'left');
    await queues.jobs.redis.hincrby(leftKey, 'a', -3 * targetMs);
    assert.deepEqual(await claim(2), [a[1], a[2]]);
  });

  test('after newest-first an account is as far behind others as it has jobs', async () => {
    const a = await put('a', 6);
    await age('a', a, 2 * targetMs);
    await remove([a[0] as string], true);
    assert.deepEqual(await claim(2), [a[5], a[4]]);
    await queues.jobs.redis.del(queues.clockKey.replace(/fairness$/, 'left'));
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
    for (const id of a.slice(0, 19)) await (await queues.queue.bull.getJob(`job_${id}`))?.remove();
    const next = await put('a', 200);
    const b = await put('b', 3);
    // The last of the additions that have set the number.
    assert.deepEqual(await lines(), { a: 201, b: 3 });
    const order = await claim(6);
    assert.deepEqual(new Set(order), new Set([a[19], ...next.slice(0, 2), ...b]));
    assert.deepEqual(await claim(198), next.slice(2));
    assert.deepEqual(await lines(), {});
  });

  test('a job of the previous release, which is in no line, runs at its own priority', async () => {
    const a = await put('a', 2);
    const old = queues.job();
    await queues.queue.bull.add('job', { ...old, request: '{}' }, { jobId: `job_${old.id}`, priority: 1 });
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
    const counted = async () => (await queues.queue.progress()).claimed;
    await claim(2, { wanted: 2 });
    assert.equal(await counted(), 2);
    await claim(4);
    assert.equal(await counted(), 6);
    await queues.put(1);
    await claim(1);
    assert.equal(await counted(), 6, 'a queue that flows costs nothing');
  });
});

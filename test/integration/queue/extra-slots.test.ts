import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { held } from '../../support/chat-requests.ts';
import { eventually } from '../../support/eventually.ts';
import { QueueFixture } from '../../support/faults/queue-fixture.ts';
import { TestGateway } from '../../support/gateway.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

const hasPriority = true;

describe('slots beyond all of a worker, for accounts beside the one that has most of them', () => {
  let queues: QueueFixture;
  before(async () => {
    queues = await QueueFixture.start();
  });
  after(() => queues?.stop());
  beforeEach(() => queues.newQueue());

  test('a claim beside an account takes jobs of all others, those without a priority first, and none of its own', async () => {
    const burst = await queues.put(3, { account: 'heavy' });
    const [first] = await queues.put(1, { account: 'light' });
    const heavy = await queues.put(3, { account: 'heavy', hasPriority });
    const [second] = await queues.put(1, { account: 'light', hasPriority });
    const [third] = await queues.put(1, { account: 'another', hasPriority });
    assert.deepEqual(await queues.claim(10, { beside: 'heavy' }), [first, second, third]);
    assert.deepEqual(await queues.claim(10, { beside: 'heavy' }), []);
    assert.deepEqual(await queues.claim(10), [...burst, ...heavy]);
  });

  test('a claim beside an account takes no more jobs than are wanted, and those of an account in their order', async () => {
    await queues.put(2, { account: 'heavy', hasPriority });
    const light = await queues.put(3, { account: 'light', hasPriority });
    assert.deepEqual(await queues.claim(2, { beside: 'heavy' }), light.slice(0, 2));
    assert.deepEqual(await queues.claim(2, { beside: 'heavy' }), light.slice(2));
  });

  test('a claim beside an account takes no jobs of one that has many, and changes no turn', async () => {
    const heavy = await queues.put(5, { account: 'heavy', hasPriority });
    const many = await queues.put(5, { account: 'many', hasPriority });
    const light = await queues.put(2, { account: 'light', hasPriority, work: 1000 });
    const clock = await queues.jobs.redis.hgetall(queues.clockKey);
    assert.deepEqual(await queues.claim(10, { beside: 'heavy' }), light);
    assert.equal((await queues.jobs.redis.hgetall(queues.clockKey)).now, clock.now);
    const [next] = await queues.put(1, { account: 'light', hasPriority });
    assert.deepEqual(await queues.claim(4), [heavy[0], many[0], next, heavy[1]]);
  });

  test('the job of another account runs at once while one account has all slots, which gets no more than these itself', async () => {
    const running = new Map<string, () => void>();
    const most: Record<string, number> = {};
    const counts: Record<string, number> = {};
    queues.consume(
      async ({ job: { id, account } }) => {
        counts[account] = (counts[account] ?? 0) + 1;
        most[account] = Math.max(most[account] ?? 0, counts[account]);
        await new Promise<void>((resolve) => running.set(id, resolve));
        running.delete(id);
        counts[account]--;
        return 'done';
      },
      { concurrency: 20 },
    );
    try {
      const heavy = await queues.put(40, { account: 'heavy', hasPriority });
      await eventually(() => assert.equal(running.size, 20));
      const light = await queues.put(3, { account: 'light', hasPriority });
      await eventually(() => assert.deepEqual([counts.heavy, counts.light], [20, 2]));
      // The third has the slot of the first.
      running.get(light[0] as string)?.();
      await eventually(() => assert.ok(running.has(light[2] as string), 'the third runs'));
      for (const id of light.slice(1)) running.get(id)?.();
      await eventually(() => assert.equal(counts.light, 0));
      for (const id of heavy) {
        await eventually(() => assert.ok(running.has(id), `${id} runs`));
        running.get(id)?.();
      }
      await eventually(async () => assert.deepEqual(await queues.leftovers(), []));
      assert.deepEqual(most, { heavy: 20, light: 2 });
    } finally {
      for (const end of running.values()) end();
    }
  });
});

describe('an account whose long requests have all slots and fill the queue', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ settings: { WORKER_CONCURRENCY_CHAT: '10' } });
  });
  after(() => gateway?.stop());

  test('the request of another account is answered before any of them ends', { timeout: 60_000 }, async () => {
    const [heavy, light] = await Promise.all(['heavy', 'light'].map((accountId) => makeApiKey(gateway, { accountId })));
    const post = (key: string | undefined, body: object, more = {}): Promise<Response> => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...more };
      return gateway.fetch('/v1/chat/completions', { method: 'POST', headers, body: JSON.stringify(body) });
    };
    const long = held('WORDS:1000@10', { user: 'long' });
    const accepted = Array.from({ length: 40 }, () => post(heavy, long, { prefer: 'respond-async' }));
    for (const { status } of await Promise.all(accepted)) assert.equal(status, 202);
    await eventually(async () => assert.equal((await vendorCalls(gateway, 'long')).length, 10));
    for (let count = 0; count < 5; count++) assert.equal((await post(light, held('Hi'))).status, 200);
    const calls = await vendorCalls(gateway, 'long');
    assert.deepEqual([calls.length, calls.filter(({ ended }) => ended !== null)], [10, []]);
  });
});

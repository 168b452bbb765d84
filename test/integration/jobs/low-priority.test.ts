import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Asking } from '../../support/asking.ts';
import { streamed } from '../../support/chat-requests.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { startRedisCluster } from '../../support/redis-cluster.ts';

const isSoak = Boolean(process.env.SLUICE_SOAK);
const low = { 'x-sluice-priority': 'low' };

describe('X-Sluice-Priority', () => {
  let asking: Asking;
  before(async () => {
    const settings = { WORKER_CONCURRENCY_CHAT: '1' };
    asking = new Asking(await TestGateway.start({ settings }));
  });
  after(() => asking?.gateway.stop());

  it('a request of low priority is answered at once where nothing else waits, held and streamed', async () => {
    assert.equal((await asking.ask('Hi', 'idle', low)).status, 200);
    const body = JSON.stringify(streamed('Hi', { user: 'idle' }));
    const stream = await asking.gateway.fetch('/v1/chat/completions', { method: 'POST', body, headers: low });
    assert.match(await stream.text(), /data: \[DONE\]/);
  });

  it('a request of low priority, by header or service_tier, runs after those that came later', async () => {
    const release = await asking.occupy('occupant');
    const first = asking.ask('Hi', 'low', low);
    const second = asking.ask('Hi', 'flex', {}, { service_tier: 'flex' });
    await asking.untilWaiting('flex', 2);
    const normal = asking.ask('Hi', 'normal', { 'x-sluice-priority': 'normal' }, { service_tier: 'flex' });
    await asking.untilWaiting('waiting', 1);
    await release();
    const statuses = await Promise.all([first, second, normal].map(async (each) => (await each).status));
    assert.deepEqual(statuses, [200, 200, 200]);
    const order = (await asking.order()).filter((user) => ['low', 'flex', 'normal'].includes(user));
    assert.equal(order[0], 'normal');
    assert.deepEqual(order.slice(1).sort(), ['flex', 'low']);
    assert.equal(await asking.waiting('flex'), 0);
  });

  it('an equal request of low priority that waits does not keep a request waiting that asks for the cached answer, too', async () => {
    const cache = { 'x-sluice-cache': '60' };
    const release = await asking.occupy('before both');
    const first = asking.ask('Hi', 'cached', { ...cache, ...low });
    await asking.untilWaiting('flex', 1);
    const second = asking.ask('Hi', 'cached', cache);
    await asking.untilWaiting('waiting', 1);
    const third = asking.ask('Hi', 'cached', cache);
    const last = asking.ask('Hi', 'after both');
    await asking.untilWaiting('waiting', 2);
    await release();
    const answers = await Promise.all([first, second, third, last]);
    const results = answers.map(({ headers }) => headers.get('x-sluice-cache'));
    assert.deepEqual(results, ['miss', 'miss', 'hit', null]);
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
    const order = (await asking.order()).filter((user) => ['cached', 'after both'].includes(user));
    assert.deepEqual(order, ['cached', 'after both', 'cached']);
    // Of low priority, too, one gets what is cached.
    assert.equal((await asking.ask('Hi', 'cached', { ...cache, ...low })).headers.get('x-sluice-cache'), 'hit');
  });

  it('an asynchronous request of low priority has a place behind all others, and can be cancelled while it waits', async () => {
    const release = await asking.occupy('another');
    const accepted = await asking.ask('Hi', 'cancelled', { ...low, prefer: 'respond-async' });
    assert.equal(accepted.status, 202);
    const { id, queue_position: place } = (await accepted.json()) as { id: string; queue_position: number };
    assert.equal(place, 0);
    const cancelled = await asking.gateway.fetch(`/v1/jobs/${id}`, { method: 'DELETE' });
    assert.equal(cancelled.status, 200);
    assert.equal(await asking.waiting('flex'), 0);
    await release();
    // The slot is free: it would have been called.
    assert.equal((await asking.ask('Hi', 'next')).status, 200);
    assert.equal(await asking.calls('cancelled'), 0);
  });

  it('400 for another priority, and no prediction in a quote for a request of low priority', async () => {
    for (const priority of ['highest', '', 'LOW', '1']) {
      const refused = await asking.ask('Hi', 'invalid', { 'x-sluice-priority': priority });
      const { param } = await assertErrorAnswer(refused, 400, 'invalid_request_error');
      assert.equal(param, 'X-Sluice-Priority');
    }
    const quote = async (headers: Record<string, string>) =>
      (await (await asking.ask('Hi', 'quote', { ...headers, prefer: 'quote' })).json()) as {
        expected_wait_seconds: unknown;
      };
    assert.equal((await quote(low)).expected_wait_seconds, null);
    assert.equal((await quote({})).expected_wait_seconds, 0);
  });
});

describe('X-Sluice-Priority, with a short wait of low priority', () => {
  it('a request of low priority that has waited for its time is served in turn with others', async (t) => {
    const settings = { WORKER_CONCURRENCY_CHAT: '1', SLUICE_FLEX_WAIT_SECONDS: '2' };
    const asking = new Asking(await TestGateway.start({ settings }));
    t.after(() => asking.gateway.stop());
    const release = await asking.occupy('occupant');
    const waiting = asking.ask('Hi', 'aged', low);
    await asking.untilWaiting('flex', 1);
    // They keep the slot, one after the other, beyond the time after which the first joins them.
    const isOver = new AbortController();
    const others = Array.from({ length: 8 }, async () => {
      while (!isOver.signal.aborted) assert.equal((await asking.ask('WORDS:3@10', 'others')).status, 200);
    });
    try {
      await asking.untilWaiting('waiting', others.length);
      await release();
      assert.equal((await waiting).status, 200);
    } finally {
      isOver.abort();
      await Promise.all(others);
    }
  });
});

describe('X-Sluice-Priority, with many requests', () => {
  it('429 for requests of low priority beyond the queue limit, which hold nothing, while others are served', async () => {
    const gateway = await TestGateway.start({ settings: { WORKER_CONCURRENCY_CHAT: '1', SLUICE_QUEUE_LIMIT: '100' } });
    try {
      const asking = new Asking(gateway);
      const release = await asking.occupy('occupant');
      const accepted = await Promise.all(
        Array.from({ length: 10 }, () => asking.ask('Hi', 'low', { ...low, prefer: 'respond-async' })),
      );
      assert.deepEqual(new Set(accepted.map(({ status }) => status)), new Set([202]));
      const refused = await asking.ask('Hi', 'low', low);
      assert.ok(Number(refused.headers.get('retry-after')) >= 1, 'it says when to come again');
      await assertErrorAnswer(refused, 429, 'rate_limit_exceeded');
      const metrics = await (await gateway.fetch('/metrics')).text();
      assert.match(
        metrics,
        /^sluice_refusals_total\{endpoint="chat",reason="queue_share".*\} 1$/m,
        'its share, not the queue',
      );
      const others = asking.ask('Hi', 'others');
      await asking.untilWaiting('waiting', 1);
      await release();
      assert.equal((await others).status, 200);
      await eventually(async () => assert.equal(await asking.calls('low'), 10));
    } finally {
      await gateway.stop();
    }
  });

  it('a request of low priority that finds no room counts against no limit of its key, and makes no job', async () => {
    const gateway = await TestGateway.start({ settings: { WORKER_CONCURRENCY_CHAT: '1', SLUICE_QUEUE_LIMIT: '100' } });
    try {
      const release = await new Asking(gateway).occupy('occupant');
      const asking = new Asking(gateway, await makeApiKey(gateway, { accountId: 'flexible', rpm: 13 }));
      const send = (count: number, headers: Record<string, string>): Promise<Response[]> =>
        Promise.all(Array.from({ length: count }, () => asking.ask('Hi', 'low', { ...low, ...headers })));
      for (const { status } of await send(10, { prefer: 'respond-async' })) assert.equal(status, 202);
      for (const refused of await send(5, {})) {
        assert.match(refused.headers.get('x-request-id') ?? '', /^req_/);
        await assertErrorAnswer(refused, 429, 'rate_limit_exceeded');
      }
      const asked = asking.ask('Hi', 'normal');
      await asking.untilWaiting('waiting', 1);
      await release();
      const normal = await asked;
      assert.equal(normal.status, 200, await normal.text());
      await eventually(async () => assert.equal(await asking.calls('low'), 10));
      const metrics = await (await gateway.fetch('/metrics')).text();
      assert.match(metrics, /^sluice_admissions_total\{capability="chat",verdict="admitted".*\} 12$/m);
    } finally {
      await gateway.stop();
    }
  });

  it('requests of low priority take nothing of the share of the queue of their account, and wait beside a full queue', async () => {
    const gateway = await TestGateway.start({ workers: 0, settings: { SLUICE_QUEUE_LIMIT: '200' } });
    try {
      const later = { prefer: 'respond-async' };
      const batch = new Asking(gateway, await makeApiKey(gateway, { accountId: 'batch' }));
      const others = new Asking(gateway, await makeApiKey(gateway, { accountId: 'others' }));
      const send = async (asking: Asking, count: number, headers: Record<string, string>): Promise<number[]> => {
        const answers = await Promise.all(Array.from({ length: count }, () => asking.ask('Hi', 'many', headers)));
        return [...new Set(answers.map(({ status }) => status))];
      };
      assert.deepEqual(await send(batch, 19, { ...low, ...later }), [202]);
      assert.deepEqual(await send(others, 150, later), [202]);
      await eventually(async () => assert.equal((await batch.ask('Hi', 'normal', later)).status, 202));
      // The queue is filled up to its limit, and the bounds of the lane are its own.
      for (const accountId of ['third', 'fourth', 'fifth', 'sixth', 'seventh', 'eighth']) {
        const more = new Asking(gateway, await makeApiKey(gateway, { accountId }));
        await send(more, 16, later);
      }
      await eventually(async () => assert.equal((await others.ask('Hi', 'full', later)).status, 503));
      assert.deepEqual(await send(batch, 1, { ...low, ...later }), [202]);
    } finally {
      await gateway.stop();
    }
  });

  it('requests of low priority wait beside the shards of a queue on a Redis Cluster', async (t) => {
    const cluster = await startRedisCluster();
    t.after(() => cluster.stop());
    const gateway = await TestGateway.start({ redisUrl: cluster.url, settings: { WORKER_CONCURRENCY_CHAT: '4' } });
    t.after(() => gateway.stop());
    const asking = new Asking(gateway);
    const answers = await Promise.all(Array.from({ length: 40 }, () => asking.ask('Hi', 'low', low)));
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
    assert.equal(await asking.waiting('flex'), 0);
  });

  // Times are held against each other, which takes a quiet machine.
  const inSoak = isSoak ? it : () => undefined;
  inSoak('10,000 waiting requests of low priority do not make others slower by more than a tenth', async (t) => {
    const gateway = await TestGateway.start({
      settings: { WORKER_CONCURRENCY_CHAT: '20', SLUICE_ACCOUNT_QUEUE_SHARE: '1' },
    });
    try {
      const asking = new Asking(gateway);
      const measure = async (user: string): Promise<number> => {
        const times: number[] = [];
        for (let count = 0; count < 100; count++) {
          const startedAt = performance.now();
          assert.equal((await asking.ask('WORDS:10@20', user)).status, 200);
          times.push(performance.now() - startedAt);
        }
        return times.sort((one, other) => one - other)[94] as number;
      };
      const idle = await measure('idle');
      for (let sent = 0; sent < 10_000; sent += 50) {
        const some = Array.from({ length: 50 }, () =>
          asking.ask('WORDS:20@20', 'low', { ...low, prefer: 'respond-async' }),
        );
        for (const { status } of await Promise.all(some)) assert.equal(status, 202);
      }
      const busy = await measure('busy');
      const left = await asking.waiting('flex');
      t.diagnostic(`p95 idle ${idle.toFixed(0)} ms, beside ${left} of low priority ${busy.toFixed(0)} ms`);
      assert.ok(left > 5000 && busy <= 1.1 * idle);
    } finally {
      await gateway.stop();
    }
  });
});

import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { Redis } from 'ioredis';
import { AdminKeys } from '../../support/admin-keys.ts';
import { eventually } from '../../support/eventually.ts';
import { FairQueue, type SentJob } from '../../support/faults/fair-queue.ts';
import { TestGateway } from '../../support/gateway.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { startRedisCluster } from '../../support/redis-cluster.ts';
import { SeededRandom } from '../../support/seeded-random.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

const isSoak = Boolean(process.env.SLUICE_SOAK);
const patience = { timeout: isSoak ? 300_000 : 180_000 };
/** Jobs that an account may put before all others' in the moment in which its burst is not seen yet. */
const unseen = 256;
/** The same of a burst that comes at once, after the queue has had none. */
const together = 8;

describe('accounts that share a queue', () => {
  let line: FairQueue;

  beforeEach(async () => {
    line = await FairQueue.start();
    await Promise.all(['heavy', 'light'].map((account) => line.addAccount(account)));
  });

  afterEach(() => line?.stop());

  /** How many jobs of the heavy account are taken between a light one's arrival in the queue and its own taking. */
  async function heavyBefore(light: SentJob, arrivedAt: number): Promise<number> {
    await light.done;
    const takenAt = line.taken.findIndex(({ id }) => id === light.id);
    return line.taken.slice(arrivedAt, takenAt).filter(({ account }) => account === 'heavy').length;
  }

  test('an account with a thousand waiting jobs lets the jobs of another account pass', patience, async () => {
    await line.sendAll('heavy', 1000);
    await line.backUp();
    line.work(4, 2);
    const passed: number[] = [];
    for (let count = 0; count < 20; count++) {
      const light = await line.send('light');
      passed.push(await heavyBefore(light, line.taken.length));
    }
    assert.ok((passed[0] as number) <= together + 2, `${passed[0]} jobs before the first`);
    assert.ok(Math.max(...passed.slice(1)) <= 2, `${passed} jobs before each`);
  });

  test('an unseen burst of one account does not block an account at a high virtual time', patience, async () => {
    await line.setVirtualTime(5000);
    await line.sendAll('heavy', 600);
    await line.backUp();
    const light = await line.send('light');
    const position = (await line.queue.reader.position(light.id)) as number;
    assert.ok(position <= unseen + 2, `${position} jobs before it`);
  });

  test('a burst of one account runs completely and in order before its steady backlog', patience, async () => {
    const [burst, backlog, after] = [400, 200, 400];
    const sent = await line.sendAll('heavy', burst);
    await line.backUp();
    line.work(1, 0);
    for (const job of sent.slice(0, burst - backlog)) await job.done;
    for (let next = burst - backlog; next < burst - backlog + after; next++) {
      sent.push(await line.send('heavy'));
      await (sent[next] as SentJob).done;
    }
    await Promise.all(sent.map(({ done }) => done));
    assert.deepEqual(
      line.taken.map(({ id }) => id),
      sent.map(({ id }) => id),
    );
  });

  test('an account with fifty jobs gets an equal share beside twenty with one job each', patience, async () => {
    const accounts = Array.from({ length: 20 }, (_, index) => `light${index}`);
    await Promise.all(accounts.map((account) => line.addAccount(account)));
    const stopped = { now: false };
    // Keeps so many jobs of an account in the queue.
    const keep = async (account: string): Promise<void> => {
      while (!stopped.now) await (await line.send(account)).done;
    };
    const first = await line.sendAll('heavy', 50);
    await line.backUp();
    const keepers = first.map(async ({ done }) => {
      await done;
      await keep('heavy');
    });
    keepers.push(...accounts.map(keep));
    line.work(10, 20);
    const counted = 21 * (isSoak ? 200 : 30);
    // Behind those of the heavy account that were there before everybody.
    while (line.taken.length < 100 + counted) await new Promise((resolve) => setTimeout(resolve, 20));
    stopped.now = true;
    await Promise.all(keepers);
    const counts = new Map<string, number>();
    for (const { account } of line.taken.slice(100, 100 + counted)) {
      counts.set(account, (counts.get(account) ?? 0) + 1);
    }
    const share = (counts.get('heavy') as number) / (counted / 21);
    assert.ok(share > 0.8 && share < 1.2, `${share.toFixed(2)} of an equal share`);
    const least = Math.min(...accounts.map((account) => counts.get(account) ?? 0));
    assert.ok(least > (0.8 * counted) / 21, `the least of the others: ${least}`);
  });

  test('cancelled waiting jobs do not set their account back', patience, async () => {
    const sent = await line.sendAll('heavy', 1000);
    await line.backUp();
    for (const job of sent) await line.cancel(job);
    await line.sendAll('light', 600);
    await line.backUp();
    const next = await line.send('heavy');
    const position = (await line.queue.reader.position(next.id)) as number;
    assert.ok(position <= unseen + 2, `${position} jobs before it`);
  });

  test(
    'accounts with weights 1, 2 and 4 share the work of a minute so, with jobs of sizes 1 to 100',
    patience,
    async (t) => {
      const weights = { one: 1, two: 2, four: 4 };
      const random = new SeededRandom(11);
      const seconds = isSoak ? 60 : 5;
      // Half of the work is in the large ones.
      const size = (): number => (random.chance(0.01) ? 100 : 1);
      let isOver = false;
      const keepers = Object.entries(weights).map(async ([account, weight]) => {
        await line.addAccount(account);
        // Each always has more jobs in the queue than could be its turn.
        const keep = async (): Promise<void> => {
          while (!isOver) await (await line.send(account, size(), weight)).done;
        };
        await Promise.all(Array.from({ length: 200 }, keep));
      });
      await line.backUp();
      // Those that came before the queue was seen to wait have no turn.
      line.work(10, 10);
      const untimed = 3 * unseen;
      while (line.taken.length < untimed) await new Promise((resolve) => setTimeout(resolve, 20));
      const from = line.taken.length;
      await new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
      const taken = line.taken.slice(from);
      isOver = true;
      await Promise.all(keepers);
      const all = taken.reduce((sum, { work }) => sum + work, 0);
      for (const [account, weight] of Object.entries(weights)) {
        const own = taken.filter((job) => job.account === account).reduce((sum, { work }) => sum + work, 0);
        const share = own / ((all * weight) / 7);
        t.diagnostic(`${account}: ${share.toFixed(3)} of its share, ${taken.length} jobs in ${seconds} s`);
        // One large job more or less.
        const margin = isSoak ? 0.05 : 0.05 + 100 / ((all * weight) / 7);
        assert.ok(Math.abs(share - 1) < margin, `${account}: ${share.toFixed(3)} of its share`);
      }
    },
  );

  // Times are held against each other, which takes a quiet machine.
  const inSoak = isSoak ? test : () => undefined;
  inSoak('an account with few jobs waits less than twice as long beside 10,000 of another', patience, async (t) => {
    const jobMs = 100;
    const measure = async (): Promise<number[]> => {
      const times: number[] = [];
      for (let count = 0; count < 60; count++) {
        const startedAt = performance.now();
        await (await line.send('light')).done;
        times.push(performance.now() - startedAt);
      }
      return times.sort((one, other) => one - other);
    };
    line.work(10, jobMs);
    const idle = await measure();
    const sent = await line.sendAll('heavy', 10_000);
    // Past those that went without a turn, and with the queue as full as it was.
    await Promise.all(sent.slice(0, unseen).map(({ done }) => done));
    const busy = await measure();
    assert.ok((await line.queue.reader.waiting()) > 1000, 'the others wait still');
    const p95 = (times: number[]): number => times[Math.floor(times.length * 0.95)] as number;
    t.diagnostic(`p95 of ${jobMs} ms jobs: idle ${p95(idle).toFixed(0)} ms, busy ${p95(busy).toFixed(0)} ms`);
    assert.ok(p95(busy) < 2 * p95(idle));
  });
});

/** Sends chats to a gateway that has no worker yet, and looks where they stand and in which order they come to the vendor. */
async function assertPassed(gateway: TestGateway): Promise<void> {
  const [many, settings] = [600, { WORKER_CONCURRENCY_CHAT: '4' }];
  const lightKey = await makeApiKey(gateway, { accountId: 'light' });
  const ask = async (key: string, id: string): Promise<{ id: string; queue_position: number }> => {
    const response = await gateway.fetch('/v1/chat/completions', {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, prefer: 'respond-async' },
      body: JSON.stringify({
        model: 'sandbox-chat',
        messages: [{ role: 'user', content: `Reply with exactly: ${id}` }],
        metadata: { test_id: id },
      }),
    });
    const body = await response.text();
    assert.equal(response.status, 202, body);
    return JSON.parse(body) as { id: string; queue_position: number };
  };
  // The first may be told to come back: accounts and keys are looked up in a database that has just begun.
  await eventually(() => ask(gateway.apiKey, 'first'));
  for (let sent = 1; sent < many; sent += 10) {
    await Promise.all(
      Array.from({ length: Math.min(10, many - sent) }, (_, index) => ask(gateway.apiKey, `heavy ${sent + index}`)),
    );
  }
  const { id } = await eventually(() => ask(lightKey, 'light'));
  const job = await gateway.fetch(`/v1/jobs/${id}`, { headers: { authorization: `Bearer ${lightKey}` } });
  const position = ((await job.json()) as { queue_position: number }).queue_position;
  assert.ok(position <= unseen + 2, `${position} jobs before it`);
  // A scrape shows the queues as they were looked at last.
  await eventually(async () => {
    const metrics = await (await gateway.fetch('/metrics')).text();
    assert.equal(/^sluice_queue_waiting\{.*capability="chat".*\} (\d+)/m.exec(metrics)?.[1], String(many + 1));
  });
  await gateway.startWorker(settings, 'chat');
  const calls = await eventually(async () => {
    const all = await vendorCalls(gateway);
    assert.ok(all.length === many + 1, `${all.length} calls`);
    return all;
  }, 150_000);
  const before = calls.findIndex(({ test_id }) => test_id === 'light');
  assert.ok(before >= 0 && before <= unseen + 10, `${before} calls before it`);
}

/** Asks for a chat with a key, later. @param id by which the vendor's calls tell it */
async function askLater(gateway: TestGateway, key: string, id: string): Promise<void> {
  const response = await gateway.fetch('/v1/chat/completions', {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, prefer: 'respond-async' },
    body: JSON.stringify({
      ...{ model: 'sandbox-chat', messages: [{ role: 'user', content: 'Hi' }] },
      ...{ max_tokens: 2000, metadata: { test_id: id } },
    }),
  });
  assert.equal(response.status, 202, await response.text());
}

/** Waits until the queue is seen to wait: what is queued before has no priority. */
async function untilItWaits(gateway: TestGateway): Promise<void> {
  await eventually(() => askLater(gateway, gateway.apiKey, 'before'));
  await eventually(async () => {
    await askLater(gateway, gateway.apiKey, 'before');
    const metrics = await (await gateway.fetch('/metrics')).text();
    const waits = /^sluice_queue_oldest_wait_seconds\{.*capability="chat".*\} (\S+)/m.exec(metrics)?.[1];
    assert.ok(Number(waits) > 0.1, `it waits for ${waits} s`);
  });
}

/** Starts a worker; returns how many of the first calls with these ids have each. */
async function firstCalls(gateway: TestGateway, ids: readonly string[], count: number): Promise<Map<string, number>> {
  await gateway.startWorker({ WORKER_CONCURRENCY_CHAT: '1' }, 'chat');
  return await eventually(async () => {
    const calls = (await vendorCalls(gateway)).map(({ test_id }) => String(test_id)).filter((id) => ids.includes(id));
    assert.ok(calls.length >= count, `${calls.length} calls`);
    const counts = new Map<string, number>();
    for (const id of calls.slice(0, count)) counts.set(id, (counts.get(id) ?? 0) + 1);
    return counts;
  }, 150_000);
}

/** Queues chats of accounts with weights before there is a worker, and counts whose the first calls are. */
async function callsByWeight(
  gateway: TestGateway,
  weights: Readonly<Record<string, number>>,
): Promise<Map<string, number>> {
  const admin = await AdminKeys.open(gateway);
  await untilItWaits(gateway);
  const perAccount = 40;
  for (const [account, weight] of Object.entries(weights)) {
    const key = await makeApiKey(gateway, { accountId: account });
    const changed = await admin.answer(200, 'PATCH', `/accounts/${account}`, { queue_weight: weight });
    assert.equal(changed.queue_weight, weight);
    for (let count = 0; count < perAccount; count++) await askLater(gateway, key, account);
  }
  const total = Object.values(weights).reduce((sum, weight) => sum + weight, 0);
  return await firstCalls(gateway, Object.keys(weights), 5 * total);
}

describe('fairness of a gateway', () => {
  test('accounts whose jobs wait are served in proportion to their weights', patience, async (t) => {
    const gateway = await TestGateway.start({ workers: 0 });
    t.after(() => gateway.stop());
    const counts = await callsByWeight(gateway, { one: 1, two: 2, four: 4 });
    for (const [account, expected] of Object.entries({ one: 5, two: 10, four: 20 })) {
      const calls = counts.get(account) ?? 0;
      assert.ok(Math.abs(calls - expected) <= 2, `${calls} of ${account}, not ${expected}`);
    }
  });

  test('keys of an account that wants it share its turns', patience, async (t) => {
    const gateway = await TestGateway.start({ workers: 0 });
    t.after(() => gateway.stop());
    const admin = await AdminKeys.open(gateway);
    await untilItWaits(gateway);
    const [many, few] = [
      await makeApiKey(gateway, { accountId: 'team' }),
      await makeApiKey(gateway, { accountId: 'team' }),
    ];
    assert.equal((await admin.answer(200, 'PATCH', '/accounts/team', { queue_by_key: true })).queue_by_key, true);
    for (let count = 0; count < 30; count++) await askLater(gateway, many, 'many');
    for (let count = 0; count < 10; count++) await askLater(gateway, few, 'few');
    const counts = await firstCalls(gateway, ['many', 'few'], 16);
    assert.ok(Math.abs((counts.get('few') ?? 0) - 8) <= 1, `${counts.get('few')} of 16`);
  });

  test('media count by what they may cost, over the weight of their account', patience, async (t) => {
    const poster = {
      capability: 'image' as const,
      prices: { image: 0.05 },
      routes: [{ vendor: 'sandbox', model: 'sandbox-image' }],
    };
    const gateway = await TestGateway.start({ workers: 0, configuration: { models: { poster } } });
    const redis = new Redis(gateway.redisUrl);
    t.after(() => redis.disconnect());
    t.after(() => gateway.stop());
    const admin = await AdminKeys.open(gateway);
    const key = await makeApiKey(gateway, { accountId: 'studio' });
    const workOf = async (n: number): Promise<number> => {
      const response = await gateway.fetch('/v1/images/generations', {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, prefer: 'respond-async' },
        body: JSON.stringify({ model: 'poster', prompt: 'A lighthouse', n }),
      });
      assert.equal(response.status, 202, await response.clone().text());
      const { id } = (await response.json()) as { id: string };
      return Number(await redis.hget(`sluice:{q-image}:image:${id}`, 'work'));
    };
    // Until the queue is seen to wait, jobs have no place in a line.
    await eventually(async () => assert.ok((await workOf(1)) > 0, 'it has no place in a line'));
    assert.deepEqual([await workOf(1), await workOf(4)], [5, 20]);
    await admin.answer(200, 'PATCH', '/accounts/studio', { queue_weight: 2 });
    assert.equal(await workOf(4), 10);
  });

  test('a gateway lets an account with one job pass one with hundreds', patience, async (t) => {
    const gateway = await TestGateway.start({ workers: 0 });
    t.after(() => gateway.stop());
    await assertPassed(gateway);
  });

  test('a gateway on a Redis Cluster lets an account with one job pass one with hundreds', patience, async (t) => {
    const cluster = await startRedisCluster();
    t.after(() => cluster.stop());
    const gateway = await TestGateway.start({ workers: 0, redisUrl: cluster.url });
    t.after(() => gateway.stop());
    await assertPassed(gateway);
  });
});

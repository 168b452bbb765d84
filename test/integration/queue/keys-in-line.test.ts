import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { FlexTerms } from '../../../shared/queue/queue.ts';
import { QueueFixture } from '../../support/faults/queue-fixture.ts';
import { loadProduct } from '../../support/gateway.ts';
import { SeededRandom } from '../../support/seeded-random.ts';

const { ParkedJobs } = await loadProduct<typeof import('../../../shared/queue/parking/parked-jobs.ts')>(
  'shared/queue/parking/parked-jobs',
);

const isSoak = Boolean(process.env.SLUICE_SOAK);
const flex: FlexTerms = { joinsAfterMs: 600_000, most: 1000, accountMost: 1000 };

interface Put {
  readonly account?: string;
  readonly work?: number;
  /** Left out: as the account's setting is: the keys share its turns. */
  readonly sharesByKey?: true | undefined;
  readonly lane?: 'flex';
}

describe('keys that share the turns of their account', () => {
  let queues: QueueFixture;
  /** The keys of jobs, by their ids. */
  let keyOf: Map<string, string>;
  before(async () => {
    queues = await QueueFixture.start();
  });
  after(() => queues?.stop());
  beforeEach(() => {
    queues.newQueue();
    keyOf = new Map();
  });

  async function put(apiKeyId: string, { account = 'account', work = 1, lane, ...more }: Put = {}): Promise<string> {
    const job = queues.job({ account, apiKeyId, ...(lane !== undefined && { lane }) });
    const sharesByKey = 'sharesByKey' in more ? more.sharesByKey : true;
    const queued = { ...job, work, sharesByKey, request: '{}' };
    const verdict = await queues.queue.enqueue(queued, true, undefined, [], lane && flex);
    assert.equal(verdict, 'queued');
    keyOf.set(job.id, apiKeyId);
    return job.id;
  }

  async function putAll(apiKeyId: string, count: number, more: Put = {}): Promise<string[]> {
    const ids: string[] = [];
    for (let index = 0; index < count; index++) ids.push(await put(apiKeyId, more));
    return ids;
  }

  /** Claims so many jobs one by one; returns their ids. */
  async function claim(count: number): Promise<string[]> {
    const claimed: string[] = [];
    while (claimed.length < count) {
      const ids = await queues.claim(1, { spare: 1 });
      if (ids.length === 0) break;
      claimed.push(...ids);
    }
    return claimed;
  }

  const keysOf = (ids: readonly string[]) => ids.map((id) => keyOf.get(id)).join('');
  const leftInRedis = async () => [
    ...(await queues.jobs.redis.keys(`${queues.root}*key*`)),
    ...(await queues.jobs.redis.keys(`${queues.root}*line*`)),
  ];

  test('a line that never becomes empty does not expire while its jobs are claimed', async () => {
    const { redis } = queues.jobs;
    await putAll('a', 4);
    const names = ['line:account', 'lines', 'keys:account', 'key:account:a'].map((name) => `${queues.root}${name}`);
    // It began nearly two days ago.
    for (const name of names) assert.equal(await redis.pexpire(name, 60_000), 1, name);
    assert.equal((await claim(1)).length, 1);
    await put('a');
    for (const name of names) assert.ok((await redis.pttl(name)) > 60_000, name);
  });

  test('the keys of an account are served in rotation, each in its own order, and nothing is left of them', async () => {
    const [a, b, c] = [await putAll('a', 4), await putAll('b', 2), await putAll('c', 1)];
    assert.deepEqual(await claim(9), [a[0], b[0], c[0], a[1], b[1], a[2], a[3]]);
    assert.deepEqual(await leftInRedis(), []);
  });

  test('keys of an account without the setting are served in the order of their requests', async () => {
    const one = { sharesByKey: undefined };
    const ids = [...(await putAll('a', 3, one)), await put('b', one)];
    assert.deepEqual(await claim(4), ids);
  });

  test('keys share their account’s work, whatever the sizes of their jobs', async () => {
    const [large, small] = isSoak ? [200, 20_000] : [10, 1000];
    await putAll('large', large, { work: 100 });
    await putAll('small', small, { work: 1 });
    const done = { large: 0, small: 0 };
    for (const id of await claim((large + small) / 2)) {
      const key = keyOf.get(id) as 'large' | 'small';
      done[key] += key === 'large' ? 100 : 1;
    }
    const difference = Math.abs(done.large - done.small);
    assert.ok(difference <= 100, `${done.large} and ${done.small}`);
  });

  test('a key that sends one large job after the other gets no more than its share', async () => {
    await putAll('b', 60, { work: 1 });
    let served = '';
    for (let round = 0; round < 3; round++) {
      await put('A', { work: 10 });
      const before = served.length;
      while (!served.slice(before).includes('A')) served += keysOf(await claim(1));
    }
    // The first comes at once; each of the others after as much work of the other key.
    assert.deepEqual(
      served
        .split('A')
        .map((jobs) => jobs.length)
        .slice(1, 3),
      [10, 10],
    );
  });

  test('the number of its keys changes nothing of an account’s share beside others', async () => {
    for (const key of ['a', 'b', 'c', 'd']) await putAll(key, 10);
    await putAll('z', 10, { account: 'other', sharesByKey: undefined });
    const served = keysOf(await claim(16));
    assert.equal(served.replace(/[^z]/g, '').length, 8, served);
    assert.equal(new Set(served).size, 5, served);
  });

  test('jobs from before the setting was changed are served with the others', async () => {
    const before = await putAll('a', 3, { sharesByKey: undefined });
    const after = [...(await putAll('a', 2)), ...(await putAll('b', 2))];
    assert.deepEqual(new Set(await claim(9)), new Set([...before, ...after]));
    const later = [...(await putAll('a', 2)), ...(await putAll('b', 2, { sharesByKey: undefined }))];
    assert.deepEqual(new Set(await claim(9)), new Set(later));
    assert.deepEqual(await leftInRedis(), []);
  });

  test('keys share turns among jobs of low priority, which keep their keys when they join the queue', async () => {
    const low = { lane: 'flex' } as const;
    const [a, b] = [await putAll('a', 3, low), await putAll('b', 1, low)];
    assert.deepEqual(await claim(2), [a[0], b[0]]);
    const c = await put('c', low);
    // Due one after the other: those of one time join in the order of their ids.
    for (const [due, id] of [a[1], a[2], c].entries()) {
      await queues.jobs.redis.zadd(`${queues.root}flex:due`, due, `job_${id}`);
    }
    assert.deepEqual(await claim(2), [a[1], c]);
    assert.deepEqual(await claim(2), [a[2]]);
    assert.deepEqual(await leftInRedis(), []);
  });

  test('keys share turns among jobs that wait for their vendor', async () => {
    const parked = new ParkedJobs(queues.capability, queues.redis.client);
    const [a, b] = [await putAll('a', 3), await putAll('b', 2)];
    await claim(5);
    for (const id of [...a, ...b]) {
      const times = { waitMs: 600_000, intervalMs: 1, latestMs: 900_000, maxParked: 100, work: 1 };
      const call = { id: `job_${id}`, token: 'claim', account: 'account', route: 'route', sharingKey: keyOf.get(id) };
      assert.equal((await parked.park({ ...call, ...times })).verdict, 'parked');
    }
    await queues.queue.remove(a[1] as string);
    await parked.unpark(new Map([['route', 10]]));
    assert.deepEqual(await claim(5), [a[0], b[0], a[2], b[1]]);
    assert.deepEqual(await leftInRedis(), []);
  });

  test('jobs that other tools have taken out of the queue cost their key nothing', async () => {
    const [a, b] = [await putAll('a', 4), await putAll('b', 2)];
    for (const id of a.slice(0, 2)) await queues.jobs.redis.zrem(`${queues.keysPrefix}prioritized`, `job_${id}`);
    assert.deepEqual(new Set(await claim(4)), new Set([...a.slice(2), ...b]));
    assert.deepEqual(await claim(1), []);
  });

  test('in whatever order jobs of keys are added, claimed and removed, each is claimed once and nothing is left', async () => {
    const random = new SeededRandom(isSoak ? Date.now() : 5);
    for (let round = 0; round < (isSoak ? 1000 : 40); round++) {
      queues.newQueue();
      const waiting = new Set<string>();
      const takeOne = async (): Promise<void> => {
        const id = [...waiting][random.int(0, waiting.size - 1)] as string;
        const taken = random.chance(0.4) ? [id] : await claim(1);
        if (taken[0] === id && waiting.has(id) && (await queues.queue.has(id))) {
          await queues.queue.remove(id, random.chance(0.5));
        }
        for (const one of taken) assert.ok(waiting.delete(one), 'claimed once');
      };
      for (let step = 0; step < 25; step++) {
        const account = `account ${random.int(0, 1)}`;
        const sharesByKey = random.chance(0.8) ? (true as const) : undefined;
        const more = { account, work: random.int(1, 20), sharesByKey };
        if (random.chance(0.6)) waiting.add(await put(`key ${random.int(0, 2)}`, more));
        else if (waiting.size > 0) await takeOne();
      }
      while (waiting.size > 0) await takeOne();
      assert.deepEqual(await leftInRedis(), []);
      assert.equal(await queues.reader.waiting(), 0);
    }
  });
});

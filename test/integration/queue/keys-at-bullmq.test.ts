import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { DelayedError, type Job, Worker } from 'bullmq';
import type { QueuedJob } from '../../../shared/queue/queue.ts';
import { CommandCounts } from '../../support/command-counts.ts';
import { eventually } from '../../support/eventually.ts';
import { QueueFixture } from '../../support/faults/queue-fixture.ts';
import { loadProduct } from '../../support/gateway.ts';
import { SeededRandom } from '../../support/seeded-random.ts';

const { queueOptions } = await loadProduct<typeof import('../../../shared/queue/queue.ts')>('shared/queue/queue');

const { ClaimedQueue } =
  await loadProduct<typeof import('../../../shared/queue/claimed-queue.ts')>('shared/queue/claimed-queue');

const { TaskWorker } =
  await loadProduct<typeof import('../../../workers/queue/task-worker.ts')>('workers/queue/task-worker');

const isSoak = Boolean(process.env.SLUICE_SOAK);
/** The score from which on a job has no start tag. */
const behind = (2 ** 21 - 1) * 2 ** 32;

interface Put {
  readonly account?: string;
  readonly work?: number;
  /** Left out: as the account's setting is: the keys share its turns. */
  readonly sharesByKey?: true | undefined;
}

describe("keys that share the turns of their account where BullMQ's Worker claims", () => {
  let queues: QueueFixture;
  let worker: Worker<QueuedJob>;
  /** The keys of jobs, by their ids. */
  let keyOf: Map<string, string>;
  before(async () => {
    queues = await QueueFixture.start();
  });
  after(() => queues?.stop());
  beforeEach(() => newQueue());

  function newQueue(): void {
    queues.newQueue();
    keyOf = new Map();
    // Without a processor it claims when it is asked to.
    const options = queueOptions(queues.capability, queues.redis.client, { autorun: false, lockDuration: 60_000 });
    worker = queues.closeLater(new Worker<QueuedJob>(queues.capability, null, options));
  }

  async function put(apiKeyId: string, { account = 'account', work = 1, ...more }: Put = {}): Promise<string> {
    const job = queues.job({ account, apiKeyId });
    const sharesByKey = 'sharesByKey' in more ? more.sharesByKey : true;
    assert.equal(await queues.queue.enqueue({ ...job, work, sharesByKey, request: '{}' }, true), 'queued');
    keyOf.set(job.id, apiKeyId);
    return job.id;
  }

  async function putAll(apiKeyId: string, count: number, more: Put = {}): Promise<string[]> {
    const ids: string[] = [];
    for (let index = 0; index < count; index++) ids.push(await put(apiKeyId, more));
    return ids;
  }

  /** Claims the next job, as BullMQ's Worker does, without a note. */
  async function claimOne(): Promise<Job<QueuedJob> | undefined> {
    return await worker.getNextJob('claim', { block: false });
  }

  async function note(job: Job<QueuedJob>): Promise<void> {
    await queues.queue.noteClaimed(job.data, job.priority);
    await job.moveToCompleted(undefined, 'claim', false);
  }

  /** Claims so many jobs one by one, each of which is noted; returns their ids. */
  async function claim(count: number): Promise<string[]> {
    const claimed: string[] = [];
    while (claimed.length < count) {
      const job = await claimOne();
      if (job === undefined) break;
      await note(job);
      claimed.push(job.data.id);
    }
    return claimed;
  }

  const keysOf = (ids: readonly string[]) => ids.map((id) => keyOf.get(id)).join('');
  const root = () => queues.clockKey.replace(/fairness$/, '');
  const leftInRedis = async () => [
    ...(await queues.jobs.redis.keys(`${root()}*key*`)),
    ...(await queues.jobs.redis.keys(`${root()}*line*`)),
    ...(await queues.jobs.redis.keys(`${root()}finished`)),
  ];

  test('a key with few jobs is served in turn beside one with many', async () => {
    const [a, b, c] = [await putAll('a', 20), await putAll('b', 3), await putAll('c', 1)];
    const order = await claim(30);
    assert.deepEqual(order, [a[0], b[0], c[0], a[1], b[1], a[2], b[2], ...a.slice(3)]);
    assert.deepEqual(await leftInRedis(), []);
  });

  test('a key that comes later has the next turn', async () => {
    const a = await putAll('a', 20);
    assert.deepEqual(await claim(5), a.slice(0, 5));
    const b = await putAll('b', 2);
    assert.deepEqual(await claim(5), [a[5], b[0], a[6], b[1], a[7]]);
  });

  test('a worker that runs ten jobs at a time, which end at once, claims in turn between keys and accounts, and each job once', async () => {
    const ids = [...(await putAll('a', 30)), ...(await putAll('b', 10))];
    ids.push(...(await putAll('z', 30, { account: 'other', sharesByKey: undefined })));
    let running: (() => void)[] = [];
    const claimed: string[] = [];
    const options = queueOptions(queues.capability, queues.redis.client, { removeOnComplete: { count: 0 } });
    const process = async (job: Job<QueuedJob>, token?: string) => {
      await new Promise<void>((end) => {
        running.push(end);
        if (running.length < 10) return;
        for (const one of running) one();
        running = [];
      });
      if (Number(job.attemptsStarted) > 1 || claimed.length % 2 === 0) return;
      await job.moveToDelayed(Date.now() + 600_000, token);
      throw new DelayedError();
    };
    const worker = new TaskWorker(queues.queue, process, { ...options, concurrency: 10, autorun: false });
    queues.closeLater(worker);
    worker.on('active', ({ data }) => claimed.push(data.id));
    worker.run();
    await eventually(() => assert.equal(claimed.length, ids.length, 'jobs that were claimed'));
    assert.deepEqual(new Set(claimed), new Set(ids));
    assert.equal(keysOf(claimed), `${'azbz'.repeat(10)}${'az'.repeat(10)}${'a'.repeat(10)}`);
  });

  test('keys share their account’s work, whatever the sizes of their jobs', async () => {
    const [large, small] = isSoak ? [200, 20_000] : [5, 500];
    await putAll('large', large, { work: 100 });
    await putAll('small', small, { work: 1 });
    const done = { large: 0, small: 0 };
    for (const id of await claim((large + small) / 2)) {
      const key = keyOf.get(id) as 'large' | 'small';
      done[key] += key === 'large' ? 100 : 1;
    }
    assert.ok(Math.abs(done.large - done.small) <= 100, `${done.large} and ${done.small}`);
  });

  test('the number of its keys changes nothing of an account’s share beside others', async () => {
    for (const key of ['a', 'b', 'c', 'd']) await putAll(key, 10);
    await putAll('z', 10, { account: 'other', sharesByKey: undefined });
    const served = keysOf(await claim(16));
    assert.equal(served.replace(/[^z]/g, '').length, 8, served);
    for (const key of ['a', 'b', 'c', 'd']) assert.equal(served.split(key).length - 1, 2, served);
  });

  test('the turn of a job that leaves is that of the key whose turn it is then, not that of the oldest job', async () => {
    const a = await putAll('a', 6);
    await claim(2);
    const [b, c] = [await putAll('b', 1), await putAll('c', 1)];
    assert.deepEqual(await claim(1), [a[2]]);
    assert.equal(await queues.queue.remove(b[0] as string), true);
    assert.deepEqual(await claim(9), [c[0], ...a.slice(3)]);
    assert.deepEqual(await leftInRedis(), []);
  });

  test('a key whose last job is claimed as another one leaves is charged for all that it had', async () => {
    await putAll('a', 2, { work: 10 });
    const b = await putAll('b', 23);
    assert.equal(keysOf(await claim(11)), 'abbbbbbbbbb');
    const claimed = (await claimOne()) as Job<QueuedJob>;
    assert.equal(keyOf.get(claimed.data.id), 'a');
    assert.equal(await queues.queue.remove(b[22] as string), true);
    await note(claimed);
    await put('a');
    assert.equal(keysOf(await claim(11)), 'bbbbbbbbbba');
  });

  test('a job that leaves before the claim of the first is noted moves no key out of its turn', async () => {
    const [a, b] = [await putAll('a', 6), await putAll('b', 3)];
    assert.deepEqual(await claim(2), [a[0], b[0]]);
    const claimed = (await claimOne()) as Job<QueuedJob>;
    assert.equal(claimed.data.id, a[1]);
    assert.equal(await queues.queue.remove(a[5] as string), true);
    await note(claimed);
    assert.deepEqual((await queues.reader.progress()).lines, new Map([['account', 5]]));
    assert.deepEqual(await claim(9), [b[1], a[2], b[2], a[3], a[4]]);
    assert.deepEqual(await leftInRedis(), []);
  });

  test('an account whose jobs are added between each claim and its note gets no more than its share, nor does its key', async () => {
    await putAll('a', 12);
    await putAll('b', 12);
    await putAll('z', 20, { account: 'other', sharesByKey: undefined });
    let order = '';
    while (order.length < 24) {
      const job = (await claimOne()) as Job<QueuedJob>;
      await put('a');
      await note(job);
      order += keyOf.get(job.data.id);
    }
    const counts = ['a', 'b', 'z'].map((key) => order.split(key).length - 1);
    assert.deepEqual(counts, [6, 6, 12], order);
  });

  test('lines whose jobs our own consumer claims keep their order', async () => {
    const ids = [...(await putAll('a', 4)), ...(await putAll('b', 2))];
    const call = { token: 'claim', wanted: 1, lockMs: 60_000, workerId: '', targetWaitMs: 0, ended: [] };
    const { entries } = await new ClaimedQueue(queues.capability).claim(queues.redis.client, call);
    assert.equal(entries[0]?.id, `job_${ids.shift()}`);
    assert.equal(await queues.queue.remove(ids.shift() as string), true);
    const line = await queues.jobs.redis.zrange(`${root()}line:account`, 0, '-1');
    assert.deepEqual(
      line,
      ids.map((id) => `job_${id}`),
    );
  });

  test('a note that is sent again changes nothing, also if its job had left the line before', async () => {
    await putAll('a', 3);
    const job = (await claimOne()) as Job<QueuedJob>;
    await put('b');
    const ended = async () => await queues.jobs.redis.zscore(`${root()}finished`, 'account');
    await queues.queue.noteClaimed(job.data, job.priority);
    const first = [await ended(), (await queues.reader.progress()).lines];
    assert.deepEqual(first, ['2', new Map([['account', 3]])]);
    await queues.queue.noteClaimed(job.data, job.priority);
    assert.deepEqual([await ended(), (await queues.reader.progress()).lines], first);
  });

  test('jobs from before the setting was changed are served in their order, with the others', async () => {
    const first = await putAll('a', 1);
    const old = await putAll('a', 3, { sharesByKey: undefined });
    const [a, b] = [await putAll('a', 4), await putAll('b', 2)];
    const order = await claim(20);
    assert.deepEqual(new Set(order.slice(4)), new Set([...a, ...b]));
    assert.deepEqual(order.slice(0, 4), [...first, ...old]);
    assert.deepEqual(await leftInRedis(), []);
  });

  test('the oldest job is still the oldest where a newer one has its place', async () => {
    const a = await putAll('a', 3);
    await claim(1);
    for (const id of a.slice(1)) {
      await queues.jobs.redis.zincrby(`${root()}line:account`, -60_000_000, `job_${id}`);
      await queues.jobs.redis.hincrby(`${queues.keysPrefix}job_${id}`, 'timestamp', -60_000);
    }
    await putAll('b', 1);
    assert.deepEqual(await claim(1), [a[1]]);
    // More than are looked at by the order in which they run.
    for (let account = 0; account < 110; account++) await put('z', { account: `${account}`, sharesByKey: undefined });
    const { oldestWaitMs } = await queues.reader.depth();
    assert.ok(oldestWaitMs >= 60_000 && oldestWaitMs < 120_000, `${oldestWaitMs} ms`);
  });

  test('jobs of high priority, and our own claims of the same queue, go on beside it', async () => {
    const [a, b] = [await putAll('a', 3), await putAll('b', 2)];
    const high = { ...queues.job({ account: 'account', lane: 'high' }), request: '{}' };
    assert.deepEqual(await claim(1), [a[0]]);
    assert.equal(await queues.queue.enqueue(high, false, undefined, [], 'high'), 'queued');
    assert.deepEqual(await claim(2), [high.id, b[0]]);
  });

  test('keys cost no command where no account has its keys share turns', async () => {
    const one = { sharesByKey: undefined };
    await putAll('a', 2, one);
    await claim(1);
    const counts = new CommandCounts(queues.jobs.redis);
    await counts.start();
    const [, second] = await putAll('b', 3, one);
    assert.equal(await queues.queue.remove(second as string), true);
    const claimed = (await claimOne()) as Job<QueuedJob>;
    const before = await counts.since();
    await queues.queue.noteClaimed(claimed.data, claimed.priority);
    const after = await counts.since();
    const ofKeys = ['hexists', 'hget', 'rpush', 'lindex', 'lpop', 'lrem'].filter((name) => after.has(name));
    assert.deepEqual(ofKeys, []);
    const total = (of: Map<string, number>) => [...of.values()].reduce((sum, calls) => sum + calls, 0);
    // As many as before keys could share turns, and the lifetimes of the line and of all lines.
    assert.ok(total(after) - total(before) <= 19, `${total(after) - total(before)} commands of a note`);
  });

  /** What of a line waits: its first job, and those that have a start tag. */
  async function tagsOf(account: string): Promise<{ first: string | undefined; tagged: string[] }> {
    const waiting: [string, number][] = [];
    for (const id of await queues.jobs.redis.zrange(`${root()}line:${account}`, 0, '-1')) {
      const score = await queues.jobs.redis.zscore(`${queues.keysPrefix}prioritized`, id);
      if (score !== null) waiting.push([id, Number(score)]);
    }
    return { first: waiting[0]?.[0], tagged: waiting.filter(([, score]) => score < behind).map(([id]) => id) };
  }

  /** Does random things to a queue, and holds the start tags of its lines against the rule after each. */
  class RandomSteps {
    readonly #random: SeededRandom;
    readonly #removes: boolean;
    readonly #waiting = new Set<string>();
    readonly #unnoted: Job<QueuedJob>[] = [];
    /** Accounts whose line has lost a job to another tool, and has not been touched since. */
    readonly #bereft = new Set<string>();

    constructor(random: SeededRandom, removes: boolean) {
      this.#random = random;
      this.#removes = removes;
    }

    async run(): Promise<void> {
      const random = this.#random;
      for (let step = 0; step < 30; step++) {
        if (random.chance(0.5)) await this.#join();
        if (random.chance(0.4)) await this.#claim();
        if (random.chance(0.3)) await this.#note();
        if (random.chance(0.2)) await this.#leave();
        if (this.#removes && random.chance(0.1)) await this.#remove();
      }
      while (this.#waiting.size + this.#unnoted.length > 0) await (random.chance(0.5) ? this.#claim() : this.#note());
    }

    async #check(step: string): Promise<void> {
      for (const account of ['account 0', 'account 1']) {
        const { first, tagged } = await tagsOf(account);
        // Between a claim and its note, and after another tool, a line may have none, but never two.
        const isOpen = this.#bereft.has(account) || this.#unnoted.some(({ data }) => data.account === account);
        const expected = first === undefined || (isOpen && tagged.length === 0) ? [] : [first];
        assert.deepEqual(tagged, expected, `${account} after ${step}, seed ${this.#random.seed}`);
      }
    }

    async #join(): Promise<void> {
      const random = this.#random;
      const account = `account ${random.int(0, 1)}`;
      const sharesByKey = random.chance(0.85) ? (true as const) : undefined;
      const more = { account, work: random.int(1, 20), sharesByKey };
      this.#waiting.add(await put(`key ${random.int(0, 2)}`, more));
      this.#bereft.delete(account);
      await this.#check('a join');
    }

    async #claim(): Promise<void> {
      const job = await claimOne();
      if (job === undefined) return assert.equal(this.#waiting.size, 0);
      assert.ok(this.#waiting.delete(job.data.id), 'claimed once');
      this.#unnoted.push(job);
      await this.#check('a claim');
    }

    async #note(): Promise<void> {
      if (this.#unnoted.length === 0) return;
      const [job] = this.#unnoted.splice(this.#random.int(0, this.#unnoted.length - 1), 1) as [Job<QueuedJob>];
      await note(job);
      this.#bereft.delete(job.data.account);
      await this.#check('a note');
    }

    async #leave(): Promise<void> {
      const id = this.#pick();
      if (id === undefined) return;
      const account = (await queues.queue.find(id))?.account as string;
      assert.equal(await queues.queue.remove(id, this.#random.chance(0.5)), true);
      this.#bereft.delete(account);
      await this.#check('a leave');
    }

    /** As the queue browser does. */
    async #remove(): Promise<void> {
      const id = this.#pick();
      if (id === undefined) return;
      this.#bereft.add((await queues.queue.find(id))?.account as string);
      await (await (await queues.queue.bull()).getJob(`job_${id}`))?.remove();
      await this.#check('a removal');
    }

    #pick(): string | undefined {
      if (this.#waiting.size === 0) return undefined;
      const id = this.#random.pick([...this.#waiting]);
      this.#waiting.delete(id);
      return id;
    }
  }

  test('in whatever order jobs join, leave, are claimed and noted, a line has one start tag, its first job’s, and nothing is left', async () => {
    const random = new SeededRandom(isSoak ? undefined : 9);
    for (let round = 0; round < (isSoak ? 1000 : 60); round++) {
      newQueue();
      await new RandomSteps(random.fork(round), false).run();
      assert.deepEqual(await leftInRedis(), [], `round ${round}, seed ${random.seed}`);
    }
  });

  test('also where another tool removes jobs, a line never has two start tags, and each job is claimed once', async () => {
    const random = new SeededRandom(isSoak ? undefined : 10);
    for (let round = 0; round < (isSoak ? 1000 : 40); round++) {
      newQueue();
      await new RandomSteps(random.fork(round), true).run();
    }
  });
});

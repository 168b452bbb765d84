import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Redis } from 'ioredis';
import type { JobIdentity } from '../../../shared/jobs/job-state.ts';
import type { VendorTask } from '../../../shared/jobs/vendor-task.ts';
import { JobFixture } from '../../support/faults/job-fixture.ts';
import { loadProduct } from '../../support/gateway.ts';

const { jobKeys, accountKeys, queueKeysPrefix } =
  await loadProduct<typeof import('../../../shared/redis/keys.ts')>('shared/redis/keys');
const { createJobState, readJobState } =
  await loadProduct<typeof import('../../../shared/jobs/job-state.ts')>('shared/jobs/job-state');
const { settlementOf, holdMember } = await loadProduct<typeof import('../../../shared/jobs/settlement/settle.ts')>(
  'shared/jobs/settlement/settle',
);
const { parseRecord } = await loadProduct<typeof import('../../../shared/jobs/settlement/outbox.ts')>(
  'shared/jobs/settlement/outbox',
);
const { releaseLease } = await loadProduct<typeof import('../../../shared/jobs/attempt.ts')>('shared/jobs/attempt');
const { readLog } = await loadProduct<typeof import('../../../shared/jobs/answer-log.ts')>('shared/jobs/answer-log');
const { storeTask } = await loadProduct<typeof import('../../../shared/jobs/store-task.ts')>('shared/jobs/store-task');
const { pause } = await loadProduct<typeof import('../../../shared/queue/pause.ts')>('shared/queue/pause');
const { Sweeper } = await loadProduct<typeof import('../../../shared/jobs/settlement/sweeper.ts')>(
  'shared/jobs/settlement/sweeper',
);
const { CapabilityQueue } = await loadProduct<typeof import('../../../shared/queue/queue.ts')>('shared/queue/queue');
const { readVersions } =
  await loadProduct<typeof import('../../../shared/runtime/wire-version.ts')>('shared/runtime/wire-version');
const { createLogger } = await loadProduct<typeof import('../../../shared/runtime/log.ts')>('shared/runtime/log');

let jobs: JobFixture;

before(async () => {
  jobs = await JobFixture.start();
});

after(() => jobs?.stop());

const once = { repeatable: false };

function taskOf(attempt = 1): VendorTask {
  return { vendor: 'openai', account: 'one', model: 'sora-2', task: 'video_1', attempt, beganAt: 1000 };
}

/** A video job whose vendor's task is stored, taken by attempt 1. */
async function withTask(): Promise<JobIdentity> {
  const job = await jobs.create({ capability: 'video', endpoint: 'videos' });
  await jobs.take(job, once);
  assert.equal(await storeTask(jobs.redis, job.id, taskOf()), 'ok');
  return job;
}

function pauseAt(job: JobIdentity, attempt: number, progress: number, dueAt = Date.now() + 2000) {
  return pause(jobs.redis, { jobId: job.id, attempt, progress, dueAt, lifetimeMs: 60_000, isCluster: false });
}

/** The job's progress frames, as they are numbered. */
async function progressFrames(job: JobIdentity): Promise<[number, number][]> {
  const { batches } = await readLog(jobs.redis, job.id, 0);
  return batches.flatMap(({ frames }) => frames.map(({ seq, text }) => [seq, JSON.parse(text).progress]));
}

const poll = (attempt: number, lastSeq: number, progress: number) => ({
  verdict: 'poll' as const,
  ...{ attempt, lastSeq, progress, task: taskOf() },
});

describe('storeTask', () => {
  test('storeTask accepts the current attempt only, and a repeat changes nothing', async () => {
    const job = await jobs.create({ capability: 'video' });
    await jobs.take(job, once);
    assert.equal(await storeTask(jobs.redis, job.id, { ...taskOf(2), task: 'another' }), 'fenced');
    assert.equal((await readJobState(jobs.redis, job.id))?.task, undefined);
    assert.equal(await storeTask(jobs.redis, job.id, taskOf()), 'ok');
    assert.equal(await storeTask(jobs.redis, job.id, taskOf()), 'ok');
    assert.deepEqual(JSON.parse((await readJobState(jobs.redis, job.id))?.task ?? ''), {
      v: readVersions.oldest,
      ...taskOf(),
    });
  });

  test('storeTask reports an ended and an unknown job', async () => {
    const job = await jobs.create({ capability: 'video' });
    await jobs.take(job, once);
    await jobs.end(job, { outcome: 'cancelled' });
    assert.equal(await storeTask(jobs.redis, job.id, taskOf()), 'ended');
    const lost = jobs.identity();
    assert.equal(await storeTask(jobs.redis, lost.id, taskOf()), 'gone');
    assert.equal(await jobs.redis.exists(jobKeys.state(lost.id)), 0);
  });
});

describe('begin with a stored task', () => {
  test('begin polls a job with a task, never runs it, any number of times', async () => {
    const job = await withTask();
    for (let attempt = 1; attempt < 9; attempt++) {
      assert.equal(await pauseAt(job, attempt, 0), 'ok');
      assert.deepEqual(await jobs.take(job, once), poll(attempt + 1, 0, 0));
    }
  });

  test('begin gives up a job with a task that has killed two workers, whatever happened between them', async () => {
    const job = await withTask();
    await jobs.expireLease(job);
    assert.deepEqual(await jobs.take(job, once), poll(2, 0, 0));
    assert.equal(await pauseAt(job, 2, 0), 'ok');
    assert.deepEqual(await jobs.take(job, once), poll(3, 0, 0));
    assert.equal(await releaseLease(jobs.redis, job.id, 3), 'released');
    assert.deepEqual(await jobs.take(job, { ...once, claim: 'same' }), poll(4, 0, 0));
    assert.deepEqual(await jobs.take(job, { ...once, claim: 'same' }), poll(4, 0, 0), 'a call that was sent again');
    await jobs.expireLease(job);
    assert.deepEqual(await jobs.take(job, once), { verdict: 'lost' });
  });

  test('begin returns the same for a repeat of the call for a task, and makes another claim wait', async () => {
    const job = await withTask();
    await jobs.expireLease(job);
    assert.deepEqual(await jobs.take(job, { ...once, claim: 'same' }), poll(2, 0, 0));
    assert.deepEqual(await jobs.take(job, { ...once, claim: 'same' }), poll(2, 0, 0));
    assert.equal((await jobs.take(job, once)).verdict, 'wait');
  });

  test('begin lets a released poll be claimed at once', async () => {
    const job = await withTask();
    await jobs.expireLease(job);
    await jobs.take(job, once);
    assert.equal(await releaseLease(jobs.redis, job.id, 2), 'released');
    assert.deepEqual(await jobs.take(job, once), poll(3, 0, 0));
  });

  test('begin reports an ended or overdue job with a task first', async () => {
    const ended = await withTask();
    await jobs.end(ended, { outcome: 'cancelled' });
    assert.deepEqual(await jobs.take(ended, once), { verdict: 'settle' });
    const overdue = await withTask();
    await jobs.redis.hset(jobKeys.state(overdue.id), 'deadline', Date.now() - 1);
    assert.deepEqual(await jobs.take(overdue, once), { verdict: 'overdue' });
  });
});

describe('pause', () => {
  test('pause lets the next claim start at once, with the progress', async () => {
    const job = await withTask();
    assert.equal(await pauseAt(job, 1, 40), 'ok');
    assert.deepEqual(await jobs.take(job, once), poll(2, 1, 40));
    assert.equal((await readJobState(jobs.redis, job.id))?.progress, 40);
  });

  test('pause writes a frame when the progress rises, and never lowers it', async () => {
    const job = await withTask();
    let attempt = 1;
    for (const progress of [0, 40, 40, 30, 41, 100, 7]) {
      assert.equal(await pauseAt(job, attempt, progress), 'ok');
      assert.equal(await pauseAt(job, attempt, progress), 'ok', 'a repeat');
      const verdict = await jobs.take(job, once);
      assert.ok(verdict.verdict === 'poll', verdict.verdict);
      attempt = verdict.attempt;
    }
    assert.deepEqual(await progressFrames(job), [
      [1, 40],
      [2, 41],
      [3, 100],
    ]);
    const ttl = await jobs.redis.pttl(jobKeys.log(job.id));
    assert.ok(ttl > 0 && ttl <= 60_000, 'a log that nobody ends does not stay');
    await jobs.end(job, { attempt });
    const { batches } = await readLog(jobs.redis, job.id, 3);
    assert.equal(batches[0]?.firstSeq, 4, 'the end comes behind the progress');
  });

  test('pause publishes its frame to the readers of the job', async () => {
    const job = await withTask();
    const subscriber = new Redis(jobs.server.url);
    try {
      await subscriber.subscribe(`${jobKeys.inboxPrefix(job.id)}api-reader`);
      const message = new Promise((resolve) => subscriber.once('message', (_channel, text) => resolve(text)));
      await pauseAt(job, 1, 12);
      assert.equal(await message, `${job.id} 1 1\np{"progress":12}`);
    } finally {
      subscriber.disconnect();
    }
  });

  test('pause accepts only the current attempt of an unfinished job', async () => {
    const job = await withTask();
    await jobs.expireLease(job);
    await jobs.take(job, once);
    assert.equal(await pauseAt(job, 1, 50), 'fenced');
    assert.equal((await jobs.take(job, once)).verdict, 'wait', 'the lease is the other attempt’s');
    await jobs.end(job, { outcome: 'cancelled' });
    assert.equal(await pauseAt(job, 2, 50), 'ended');
    assert.equal(await pauseAt(jobs.identity(), 1, 50), 'gone');
    assert.deepEqual(await progressFrames(job), [[1, undefined]], 'the end alone');
  });
});

describe('record of a job with a task', () => {
  test('the record of a job with a task counts creations, not polls, and names the vendor', async () => {
    const job = await withTask();
    for (let attempt = 1; attempt < 6; attempt++) {
      await pauseAt(job, attempt, attempt);
      await jobs.take(job, once);
    }
    await jobs.end(job, { outcome: 'cancelled' });
    const state = await readJobState(jobs.redis, job.id);
    assert.equal(state?.attempt, 6);
    const record = parseRecord((state && settlementOf(state)?.record) ?? '');
    assert.deepEqual([record?.attempts, record?.vendor, record?.outcome], [1, 'openai', 'cancelled']);
  });
});

describe('depth of a queue', () => {
  test('the depth of a queue reports how late a poll is, not the age of its job', async () => {
    const queue = new CapabilityQueue('video', jobs.redis);
    try {
      const job = await withTask();
      await queue.enqueue(job);
      for (const [dueAt, least, most] of [
        [Date.now() - 5000, 5000, 15_000],
        [Date.now() + 60_000, 0, 0],
      ] as const) {
        await pauseAt(job, 1, 20, dueAt);
        const { waiting, oldestWaitMs } = await queue.reader.depth();
        assert.equal(waiting, 1);
        assert.ok(oldestWaitMs >= least && oldestWaitMs <= most, `${oldestWaitMs} ms`);
      }
      await queue.remove(job.id);
    } finally {
      await queue.close();
    }
  });
});

describe('Sweeper', () => {
  async function sweep(job: JobIdentity, queue: InstanceType<typeof CapabilityQueue>): Promise<void> {
    const hold = holdMember({ ...job, jobId: job.id });
    await jobs.redis.zadd(accountKeys.holds(job.account), 1, hold);
    const context = { redis: jobs.redis, isCluster: false, blobs: {} as never, queue: () => queue };
    const sweeper = new Sweeper(context, createLogger('silent', 'test').log);
    await sweeper.sweep();
    sweeper.close();
    await jobs.redis.zrem(accountKeys.holds(job.account), hold);
  }

  test('the sweeper requeues a job with a running task that its queue has lost, once', async () => {
    const queue = new CapabilityQueue('video', jobs.redis);
    try {
      const job = await withTask();
      await pauseAt(job, 1, 20);
      await sweep(job, queue);
      await sweep(job, queue);
      assert.equal(await queue.reader.waiting(), 1);
      assert.deepEqual(await queue.find(job.id), job);
      assert.deepEqual(await jobs.take(job, once), poll(2, 1, 20));
    } finally {
      await queue.close();
    }
  });

  test('the sweeper requeues a job with its request, or its request blob, and its metadata', async () => {
    const queue = new CapabilityQueue('video', jobs.redis);
    try {
      for (const stored of [{ request: '{"prompt":"a"}' }, { requestBlob: 'blob' }]) {
        const more = { capability: 'video', resource: 'background', metadata: '{"team":"a"}' } as const;
        const job = jobs.identity(more);
        await createJobState(jobs.redis, job, 'api-reader', stored);
        await jobs.take(job, once);
        await storeTask(jobs.redis, job.id, taskOf());
        await pauseAt(job, 1, 20);
        await sweep(job, queue);
        assert.deepEqual(await queue.find(job.id), { ...job, ...stored });
        await queue.remove(job.id);
      }
    } finally {
      await queue.close();
    }
  });

  test('the sweeper ends a started job that is active without a lease, and not one that waits', async () => {
    const queue = new CapabilityQueue('video', jobs.redis);
    try {
      const [stuck, waiting] = [await jobs.create({ capability: 'video' }), await jobs.create({ capability: 'video' })];
      for (const job of [stuck, waiting]) {
        await queue.enqueue(job);
        await jobs.take(job, once);
        await jobs.expireLease(job, 25_000);
      }
      const keys = ['wait', 'active'].map((name) => `${queueKeysPrefix('video')}${name}`) as [string, string];
      await jobs.redis.lrem(keys[0], 1, `job_${stuck.id}`);
      await jobs.redis.lpush(keys[1], `job_${stuck.id}`);
      for (const job of [stuck, waiting]) await sweep(job, queue);
      assert.equal((await readJobState(jobs.redis, stuck.id))?.errorCode, 'outcome_unknown');
      assert.equal((await readJobState(jobs.redis, waiting.id))?.outcome, undefined, 'it will yet be run');
      await jobs.redis.del(...keys);
    } finally {
      await queue.close();
    }
  });

  test('concurrent sweepers check every due job in one round, each job once', async () => {
    const count = 450;
    const looked: string[] = [];
    const queue = {
      has: async (id: string) => {
        looked.push(id);
        return true;
      },
    };
    const made = await Promise.all(Array.from({ length: count }, () => jobs.create({ account: 'busy' })));
    const holds = accountKeys.holds('busy');
    for (const job of made) await jobs.redis.zadd(holds, 1, holdMember({ ...job, jobId: job.id }));
    const context = { redis: jobs.redis, isCluster: false, blobs: {} as never, queue: () => queue as never };
    const sweepers = [1, 2, 3].map(() => new Sweeper(context, createLogger('silent', 'test').log));
    await Promise.all(sweepers.map((sweeper) => sweeper.sweep()));
    for (const sweeper of sweepers) sweeper.close();
    assert.deepEqual(looked.sort(), made.map(({ id }) => id).sort());
    const [, soonest] = await jobs.redis.zrange(holds, '0', '0', 'WITHSCORES');
    assert.ok(Number(soonest) > Date.now() + 1000, 'they are looked at again, a while later');
    await jobs.redis.del(holds);
  });

  test('the sweeper ends a job without a task as outcome_unknown, and an overdue one as timeout', async () => {
    const queue = new CapabilityQueue('video', jobs.redis);
    try {
      const begun = await jobs.create({ capability: 'video' });
      await jobs.take(begun, once);
      await jobs.expireLease(begun);
      await sweep(begun, queue);
      assert.equal((await readJobState(jobs.redis, begun.id))?.errorCode, 'outcome_unknown');
      const late = await jobs.create({ capability: 'video', deadlineAt: Date.now() + 50 });
      await jobs.take(late, once);
      await storeTask(jobs.redis, late.id, taskOf());
      await pauseAt(late, 1, 20);
      await new Promise((resolve) => setTimeout(resolve, 60));
      await sweep(late, queue);
      assert.equal((await readJobState(jobs.redis, late.id))?.errorCode, 'timeout');
    } finally {
      await queue.close();
    }
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Redis } from 'ioredis';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import { loadProduct } from '../support/gateway.ts';
import { JobFixture } from './job-fixture.ts';

const { accountKeys, jobKeys } = await loadProduct<typeof import('../../shared/keys.ts')>('shared/keys');
const { readJobState } = await loadProduct<typeof import('../../shared/jobs/job-state.ts')>('shared/jobs/job-state');
const { settle, settleNow, holdMember } =
  await loadProduct<typeof import('../../shared/jobs/settle.ts')>('shared/jobs/settle');
const { renewLease, releaseLease } =
  await loadProduct<typeof import('../../shared/jobs/lease.ts')>('shared/jobs/lease');
const { readLog } = await loadProduct<typeof import('../../shared/jobs/answer-log.ts')>('shared/jobs/answer-log');
const { admit } = await loadProduct<typeof import('../../api/admission/admit.ts')>('api/admission/admit');

let jobs: JobFixture;

before(async () => {
  jobs = await JobFixture.start();
});

after(() => jobs?.stop());

async function loggedTexts(job: JobIdentity): Promise<string[]> {
  const { batches } = await readLog(jobs.redis, job.id, 0);
  return batches.flatMap(({ frames }) => frames.map((frame) => frame.text.replaceAll('"', '')));
}

describe('begin', () => {
  test('drops a job that has no state', async () => {
    assert.deepEqual(await jobs.take(jobs.identity()), { verdict: 'drop' });
  });

  test('runs a job, and gives a repeat of the same call the same answer', async () => {
    const job = await jobs.create();
    assert.deepEqual(await jobs.take(job, { taking: 'same' }), { verdict: 'run', attempt: 1, lastSeq: 0 });
    assert.deepEqual(await jobs.take(job, { taking: 'same' }), { verdict: 'run', attempt: 1, lastSeq: 0 });
  });

  test('makes another taking wait as long as the lease lives, and takes over after it', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    const second = await jobs.take(job);
    assert.equal(second.verdict, 'wait');
    assert.ok(second.verdict === 'wait' && second.waitMs > 5000 && second.waitMs <= 10_000);
    await jobs.expireLease(job);
    assert.deepEqual(await jobs.take(job), { verdict: 'run', attempt: 2, lastSeq: 0 });
  });

  test('never runs a job again that has a delta in its log', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    await jobs.write(job, 1, 1, ['a']);
    await jobs.expireLease(job);
    assert.deepEqual(await jobs.take(job), { verdict: 'interrupted' });
  });

  test('runs a job again that has only progress in its log, and numbers its frames on', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    await jobs.write(job, 1, 1, ['a', 'b'], false);
    await jobs.expireLease(job);
    assert.deepEqual(await jobs.take(job), { verdict: 'run', attempt: 2, lastSeq: 2 });
  });

  test('does not run what may not be repeated once its vendor may have been called', async () => {
    const job = await jobs.create();
    await jobs.take(job, { repeatable: false });
    await jobs.expireLease(job);
    assert.deepEqual(await jobs.take(job, { repeatable: false }), { verdict: 'unknown' });
  });

  test('gives a job up after three attempts; one that was given back does not count', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    assert.equal(await releaseLease(jobs.redis, job.id, 1), 'released');
    for (const attempt of [2, 3, 4]) {
      assert.deepEqual(await jobs.take(job), { verdict: 'run', attempt, lastSeq: 0 });
      await jobs.expireLease(job);
    }
    assert.deepEqual(await jobs.take(job), { verdict: 'exhausted' });
  });

  test('does not run a job that has ended or is past its deadline', async () => {
    const ended = await jobs.create();
    await jobs.end(ended);
    assert.deepEqual(await jobs.take(ended), { verdict: 'settle' });
    assert.deepEqual(await jobs.take(await jobs.create({ deadlineAt: Date.now() - 1 })), { verdict: 'overdue' });
  });
});

describe('append', () => {
  test('takes frames of the current attempt only', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    await jobs.expireLease(job);
    await jobs.take(job);
    assert.equal(await jobs.write(job, 1, 1, ['old']), 'fenced');
    assert.equal(await jobs.write(job, 2, 1, ['new']), 'ok');
    assert.equal(await renewLease(jobs.redis, job.id, 1), 'fenced');
    assert.equal((await jobs.end(job, { attempt: 1 })).verdict, 'fenced');
    assert.deepEqual(await loggedTexts(job), ['new']);
  });

  test('ignores frames that the log has', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    assert.equal(await jobs.write(job, 1, 1, ['a', 'b']), 'ok');
    assert.equal(await jobs.write(job, 1, 1, ['a', 'b']), 'ok');
    assert.equal(await jobs.write(job, 1, 3, ['c']), 'ok');
    assert.deepEqual(await loggedTexts(job), ['a', 'b', 'c']);
  });

  test('takes nothing after the end, and nothing of a job without a state', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    await jobs.write(job, 1, 1, ['a']);
    await jobs.end(job, { outcome: 'cancelled' });
    assert.equal(await jobs.write(job, 1, 2, ['b']), 'ended');
    assert.equal(await renewLease(jobs.redis, job.id, 1), 'ended');
    assert.deepEqual(await loggedTexts(job), ['a', '{}']);
    const lost = jobs.identity();
    assert.equal(await jobs.write(lost, 1, 1, ['a']), 'gone');
    assert.equal(await jobs.redis.exists(jobKeys.log(lost.id)), 0);
  });
});

describe('finish', () => {
  test('lets the first caller win, and tells the others what stands', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    assert.deepEqual(await jobs.end(job, { outcome: 'cancelled' }), {
      verdict: 'finished',
      outcome: 'cancelled',
      began: true,
    });
    assert.deepEqual(await jobs.end(job, { attempt: 1 }), { verdict: 'already', outcome: 'cancelled', began: true });
    assert.deepEqual(await loggedTexts(job), ['{}']);
    assert.equal((await readJobState(jobs.redis, job.id))?.outcome, 'cancelled');
  });

  test('ends a job as queued only before it began, as abandoned only when its lease is dead', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    assert.equal((await jobs.end(job, { guard: 'queued' })).verdict, 'refused');
    assert.equal((await jobs.end(job, { guard: 'abandoned' })).verdict, 'refused');
    await jobs.expireLease(job);
    assert.equal((await jobs.end(job, { guard: 'abandoned' })).verdict, 'finished');
    assert.equal((await jobs.end(await jobs.create(), { guard: 'queued' })).verdict, 'finished');
  });

  test('tells the worker that is still at the job', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    const subscriber = new Redis(jobs.server.url);
    try {
      await subscriber.subscribe(`${jobKeys.inboxPrefix(job.id)}worker`);
      const message = new Promise((resolve) => subscriber.once('message', (_channel, text) => resolve(text)));
      await jobs.end(job, { outcome: 'cancelled' });
      assert.equal(await message, `abort ${job.id}`);
    } finally {
      subscriber.disconnect();
    }
  });
});

describe('settle', () => {
  const settlement = (job: JobIdentity) => ({
    ...{ ...job, jobId: job.id, outcome: 'failed' as const, errorCode: 'server_error' as const, began: true },
    record: `{"id":"${job.id}"}`,
  });
  const admitJob = (job: JobIdentity) =>
    admit(jobs.redis, { job, concurrency: 10, bodyHash: 'body', shedding: undefined, reader: undefined });

  test('takes a hold and a running place off once, and those of no other job', async () => {
    await jobs.redis.set(accountKeys.keyActive('account', 'key'), '1');
    const [one, two] = [await jobs.create(), await jobs.create()];
    assert.equal((await admitJob(one)).running, 1);
    assert.equal((await admitJob(one)).verdict, 'admitted', 'a repeated admission is one admission');
    assert.equal((await admitJob(two)).running, 2);
    await settle(jobs.redis, [settlement(one)]);
    await settleNow(jobs.redis, settlement(one));
    const holds = await jobs.redis.zrange(accountKeys.holds('account'), '0', '-1');
    assert.deepEqual(holds, [holdMember({ ...two, jobId: two.id })]);
    assert.deepEqual(await jobs.redis.zrange(accountKeys.running('account', 'key'), '0', '-1'), [two.id]);
    const ttl = await jobs.redis.pttl(jobKeys.state(one.id));
    assert.ok(ttl > 0 && ttl <= 120_000);
    await settle(jobs.redis, [settlement(two)]);
  });

  test('a second time, does not free an idempotency key that is bound to a new job by now', async () => {
    await jobs.redis.set(accountKeys.keyActive('account', 'key'), '1');
    const [one, two] = [await jobs.create({ idempotency: 'hash' }), await jobs.create({ idempotency: 'hash' })];
    assert.equal((await admitJob(one)).verdict, 'admitted');
    const replay = await admitJob(two);
    assert.deepEqual([replay.verdict, replay.boundJobId], ['replay', one.id]);
    await settle(jobs.redis, [settlement(one)]);
    assert.equal((await admitJob(two)).verdict, 'admitted');
    await settle(jobs.redis, [settlement(one)]);
    assert.equal(await jobs.redis.hget(accountKeys.idempotency('account', 'hash'), 'job'), two.id);
    await settle(jobs.redis, [settlement(two)]);
  });
});

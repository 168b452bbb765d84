import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import type { JobIdentity } from '../../../shared/jobs/job-state.ts';
import type { EndJobContext } from '../../../shared/jobs/settlement/end-job.ts';
import type { QueueEntry } from '../../../shared/queue/claimed-queue.ts';
import { CommandCounts } from '../../support/command-counts.ts';
import { eventually } from '../../support/eventually.ts';
import { noting, QueueFixture } from '../../support/faults/queue-fixture.ts';
import { loadProduct } from '../../support/gateway.ts';

const { accountKeys, jobKeys } = await loadProduct<typeof import('../../../shared/redis/keys.ts')>('shared/redis/keys');
const { renewLeases, readJobProgress } =
  await loadProduct<typeof import('../../../shared/jobs/leases/leases.ts')>('shared/jobs/leases/leases');
const { releaseLease } = await loadProduct<typeof import('../../../shared/jobs/attempt.ts')>('shared/jobs/attempt');
const { writeFor } =
  await loadProduct<typeof import('../../../shared/runtime/wire-version.ts')>('shared/runtime/wire-version');
const { ClaimedQueue } =
  await loadProduct<typeof import('../../../shared/queue/claimed-queue.ts')>('shared/queue/claimed-queue');
const { holdMember } = await loadProduct<typeof import('../../../shared/jobs/settlement/settle.ts')>(
  'shared/jobs/settlement/settle',
);
const { Sweeper } = await loadProduct<typeof import('../../../shared/jobs/settlement/sweeper.ts')>(
  'shared/jobs/settlement/sweeper',
);
const { createLogger } = await loadProduct<typeof import('../../../shared/runtime/log.ts')>('shared/runtime/log');
const log = createLogger('silent', 'test').log;
const releaseBefore = { oldest: 1, newest: 1 };

let queues: QueueFixture;
before(async () => {
  queues = await QueueFixture.start();
});
beforeEach(() => queues.newQueue());
afterEach(() => writeFor([]));
after(() => queues?.stop());

/** A job whose vendor has been silent for some seconds. */
async function silentJob(more: Partial<JobIdentity> = {}): Promise<JobIdentity> {
  const job = await queues.jobs.create(more);
  await queues.jobs.take(job);
  await queues.jobs.write(job, 1, 1, ['a']);
  assert.equal(await queues.jobs.renew(job), 'ok');
  assert.ok(await entryOf(job));
  return job;
}

const entryOf = ({ id }: JobIdentity) => queues.jobs.redis.hget(jobKeys.leases(id), id);

async function sweep(job: JobIdentity): Promise<void> {
  const { redis } = queues.jobs;
  await redis.zadd(accountKeys.holds(job.account), 1, holdMember({ ...job, jobId: job.id }));
  const blobs = { ofRecords: () => ({ delete: async () => undefined }) } as never;
  const context: EndJobContext = { redis, isCluster: false, blobs, queue: () => queues.queue };
  const sweeper = new Sweeper(context, log);
  await sweeper.sweep();
  sweeper.close();
}

describe('leases on jobs whose vendors are silent', () => {
  test('renewing the leases of many jobs, and reading how far they are, costs Redis two commands and one for each tag', async () => {
    const { jobs } = queues;
    const all = await Promise.all(Array.from({ length: 300 }, () => silentJob()));
    await readJobProgress(jobs.redis, { jobId: all[0]?.id as string });
    const tags = new Set(all.map(({ id }) => jobKeys.tag(id))).size;
    const counts = new CommandCounts(jobs.redis);
    await counts.start();
    const leased = all.map(({ id: jobId }) => ({ jobId, attempt: 1 }));
    const verdicts: unknown[] = [];
    await renewLeases(jobs.redis, leased, (_, ownership) => verdicts.push(ownership));
    assert.deepEqual(Object.fromEntries(await counts.since()), { evalsha: 1, time: 1, hmget: tags, hset: tags });
    assert.deepEqual(new Set(verdicts), new Set(['ok']));
    assert.equal(verdicts.length, 300);
    await counts.start();
    const progress = await Promise.all(leased.map(({ jobId }) => readJobProgress(jobs.redis, { jobId })));
    assert.deepEqual(Object.fromEntries(await counts.since()), { evalsha: 1, time: 1, hmget: tags });
    assert.ok(progress.every((one) => one?.seq === 1 && !one.hasEnded && one.ownedUntil > Date.now()));
  });

  test('a silent job is begun by no other claim while its lease is renewed, and by the next one once it has expired', async () => {
    const { jobs } = queues;
    const job = await jobs.create();
    await jobs.take(job);
    await jobs.renew(job);
    // What its state says of the lease is as old as the silence.
    await jobs.redis.hset(jobKeys.state(job.id), 'lease', Date.now() - 60_000);
    assert.equal((await jobs.take(job)).verdict, 'wait');
    await jobs.expireLease(job);
    assert.equal((await jobs.take(job)).verdict, 'run');
    assert.equal(await jobs.renew(job, 1), 'fenced');
    assert.equal(await jobs.renew(job, 2), 'ok');
    assert.equal(await jobs.renew(job, 1), 'fenced');
    assert.equal(await jobs.write(job, 1, 1, ['late']), 'fenced');
  });

  test('a silent job that has ended, was released or has lost its state is renewed no more', async () => {
    const { jobs } = queues;
    const [ended, released, lost] = [await silentJob(), await jobs.create(), await silentJob()];
    await jobs.end(ended, { outcome: 'cancelled' });
    assert.equal(await entryOf(ended), null);
    assert.equal(await jobs.renew(ended), 'ended');
    await jobs.take(released);
    await jobs.renew(released);
    assert.equal(await releaseLease(jobs.redis, released.id, 1), 'released');
    assert.equal((await jobs.take(released)).verdict, 'run');
    assert.equal(await jobs.renew(released, 1), 'fenced');
    await jobs.redis.del(jobKeys.state(lost.id), jobKeys.leases(lost.id));
    assert.equal(await jobs.renew(lost), 'gone');
  });

  test('frames end the silence, and a reader that asks is told of them, of the end, and of a job that is none', async () => {
    const { jobs } = queues;
    const [talking, ended, silent, unknown] = [
      await silentJob(),
      await silentJob(),
      await silentJob(),
      jobs.identity(),
    ];
    await jobs.write(talking, 1, 2, ['b']);
    assert.equal(await entryOf(talking), null);
    await jobs.end(ended, { attempt: 1 });
    const asked = await Promise.all(
      [talking, unknown, ended, silent].map(({ id: jobId }) => readJobProgress(jobs.redis, { jobId })),
    );
    assert.deepEqual(
      asked.map((progress) => progress && [progress.seq, progress.hasEnded, progress.ownedUntil > 0]),
      [[2, false, false], undefined, [2, true, false], [1, false, true]],
    );
    assert.equal(await jobs.redis.hget(jobKeys.state(talking.id), 'silent'), null);
  });

  test('the sweeper leaves a silent job to its worker until its deadline, and ends it some time after its lease', async () => {
    const { jobs } = queues;
    const outcome = ({ id }: JobIdentity) => jobs.redis.hmget(jobKeys.state(id), 'terminal', 'error');
    const running = await silentJob();
    await jobs.redis.hset(jobKeys.state(running.id), 'lease', Date.now() - 60_000);
    await sweep(running);
    assert.deepEqual(await outcome(running), [null, null]);
    const overdue = await silentJob();
    const entry = (await entryOf(overdue)) as string;
    await jobs.redis.hset(jobKeys.leases(overdue.id), overdue.id, entry.replace(/\d+$/, String(Date.now() - 1)));
    await sweep(overdue);
    assert.deepEqual(await outcome(overdue), [null, null], 'its state says when');
    await jobs.redis.hset(jobKeys.state(overdue.id), 'deadline', Date.now() - 1);
    const identity = JSON.stringify({ ...overdue, deadlineAt: Date.now() - 1 });
    await jobs.redis.hset(jobKeys.state(overdue.id), 'job', identity);
    await sweep(overdue);
    assert.deepEqual(await outcome(overdue), ['failed', 'timeout']);
    const lost = await silentJob();
    await queues.queueWithState(lost);
    await jobs.redis.hset(jobKeys.state(lost.id), 'lease', Date.now() - 60_000);
    await jobs.expireLease(lost, 10_000);
    await jobs.redis.hset(jobKeys.state(lost.id), 'lease', Date.now() - 60_000);
    await sweep(lost);
    assert.deepEqual(await outcome(lost), [null, null], 'another worker may still take it over');
    await jobs.expireLease(lost, 60_000);
    await sweep(lost);
    assert.deepEqual(await outcome(lost), ['failed', 'stream_interrupted']);
  });

  test('while a process of the release before runs, leases are where it reads them', async () => {
    const { jobs } = queues;
    const job = await silentJob();
    await jobs.redis.hset(jobKeys.state(job.id), 'lease', 1);
    writeFor([releaseBefore]);
    assert.equal(await jobs.renew(job), 'ok');
    assert.equal(await entryOf(job), null);
    assert.ok(Number(await jobs.redis.hget(jobKeys.state(job.id), 'lease')) > Date.now() + 8000);
    await jobs.end(job, { outcome: 'cancelled' });
    assert.equal(await jobs.renew(job), 'ended');
  });
});

describe('claims of workers', () => {
  const lockOf = (id: string | undefined) => `${queues.keysPrefix}job_${id}:lock`;
  const ends: (() => void)[] = [];
  const hang = () => new Promise<'done'>((resolve) => ends.push(() => resolve('done')));
  afterEach(() => {
    for (const end of ends.splice(0)) end();
  });

  test('the jobs of a dead worker return at the next check, and those of one that reports do not', async () => {
    const { redis } = queues.jobs;
    const queue = new ClaimedQueue(queues.capability);
    const ids = await queues.put(4);
    const claim = { wanted: 2, lockMs: 60_000, workerId: '', targetWaitMs: 0, ended: [] };
    const dead = await queue.claim(redis, { ...claim, token: 'dead:1' });
    await queue.claim(redis, { ...claim, token: 'alive:1' });
    await queue.renew(redis, { id: 'alive', aliveMs: 60_000 }, [], 60_000);
    await queue.renew(redis, { id: 'dead', aliveMs: 60_000 }, [], 60_000);
    assert.equal(await queue.returnStalled(redis, 1, 3), 0);
    await queue.renew(redis, { id: 'dead', aliveMs: 0 }, [], 60_000);
    await eventually(async () => assert.equal(await queue.returnStalled(redis, 1, 3), 2));
    assert.deepEqual(
      dead.entries.map(({ id }) => id.slice(4)),
      ids.slice(0, 2),
    );
    const { ran, run } = noting();
    queues.consume(run);
    await eventually(() => assert.deepEqual([...ran].sort(), ids.slice(0, 2).sort()));
    // Ended jobs leave the queue with the next claim.
    await eventually(async () => assert.equal(await queues.reader.active(), 2));
  });

  test('a job that stalls too often is claimed as one that must not run', async () => {
    const { redis } = queues.jobs;
    const queue = new ClaimedQueue(queues.capability);
    const [id] = await queues.put(1);
    const ids: (string | undefined)[] = [];
    for (let stalled = 0; stalled < 3; stalled++) {
      const call = { token: `gone:${stalled}`, wanted: 1, lockMs: 1, workerId: '', targetWaitMs: 0, ended: [] };
      const { entries } = await queue.claim(redis, call);
      const { data } = entries[0] as QueueEntry;
      ids.push(data === '' ? undefined : JSON.parse(data).id);
      await eventually(async () => assert.equal(await queue.returnStalled(redis, 1, 1), 1));
    }
    assert.deepEqual(ids, [id, id, undefined]);
  });

  test('the check of a paused queue returns jobs to it without losing one', async () => {
    const { redis } = queues.jobs;
    const queue = new ClaimedQueue(queues.capability);
    const [id] = await queues.put(1);
    await queue.claim(redis, { token: 'gone:1', wanted: 1, lockMs: 1, workerId: '', targetWaitMs: 0, ended: [] });
    await (await queues.queue.bull()).pause();
    await eventually(async () => assert.equal(await queue.returnStalled(redis, 1, 1), 1));
    const { ran, run } = noting();
    queues.consume(run);
    await (await queues.queue.bull()).resume();
    await eventually(() => assert.deepEqual(ran, [id]));
  });

  test('a worker that closes with a job leaves it to others at once, and one that fails to start it after a lock', async () => {
    const { redis } = queues.jobs;
    const [id] = await queues.put(1);
    let tries = 0;
    queues.consume(
      async () => {
        tries++;
        if (tries === 1) throw new Error('it broke');
        return 'done';
      },
      { lockMs: 300, stalledCheckMs: 50 },
    );
    await eventually(() => assert.equal(tries, 2));
    await eventually(async () => assert.equal(await redis.exists(lockOf(id)), 0));
  });

  test('locks live longer than reports of their worker, except while a worker of the release before runs', async () => {
    const { redis } = queues.jobs;
    const times = { lockMs: 400, stalledCheckMs: 50 };
    const [first] = await queues.put(1);
    queues.consume(hang, { ...times, concurrency: 2, workerId: 'locker' });
    await eventually(async () => assert.ok((await redis.pttl(lockOf(first))) > 1200, 'its lock is not renewed'));
    writeFor([releaseBefore]);
    await eventually(async () => {
      const left = await redis.pttl(lockOf(first));
      assert.ok(left > 0 && left <= 400, `${left}`);
    });
    const [second] = await queues.put(1);
    await eventually(async () => {
      const left = await redis.pttl(lockOf(second));
      assert.ok(left > 0 && left <= 400, `${left}`);
    });
    writeFor([]);
    await eventually(async () => assert.ok((await redis.pttl(lockOf(second))) > 1200, 'its lock is not renewed'));
  });
});

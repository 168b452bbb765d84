import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import { adoptJob } from '../../../api/replies/adopt-job.ts';
import { LeftJobs } from '../../../api/replies/left-jobs.ts';
import { readerOf } from '../../../shared/jobs/inbox.ts';
import { type JobIdentity, readJobState } from '../../../shared/jobs/job-state.ts';
import { jobKeys } from '../../../shared/redis/keys.ts';
import { createLogger } from '../../../shared/runtime/log.ts';
import { JobFixture } from '../../support/faults/job-fixture.ts';

describe('adopt-job.lua', () => {
  let jobs: JobFixture;
  let subscriber: Redis;
  before(async () => {
    jobs = await JobFixture.start();
    subscriber = new Redis(jobs.server.url);
    await subscriber.subscribe(...jobKeys.inboxes(readerOf('api-mine')), ...jobKeys.inboxes(readerOf('api-alive')));
  });
  after(async () => {
    subscriber.disconnect();
    await jobs.stop();
  });

  const adopt = (
    { id }: JobIdentity,
    { retry = 'retry', process = 'api-mine', isLongSubscribed = true } = {},
  ): Promise<boolean> => {
    const readers = { isLongSubscribed } as Parameters<typeof adoptJob>[0]['readers'];
    return adoptJob({ redis: jobs.redis, isCluster: false, processId: process, readers }, id, retry);
  };
  const readBy = async (process: string): Promise<JobIdentity> => {
    const job = await jobs.create();
    await jobs.redis.hset(jobKeys.state(job.id), 'readers', readerOf(process));
    await jobs.take(job);
    return job;
  };
  const leftJobs = (): LeftJobs => {
    const { log } = createLogger('silent', 'test');
    const services = { redis: jobs.redis, isCluster: false, log } as ConstructorParameters<typeof LeftJobs>[0];
    return new LeftJobs(services);
  };
  const leave = (job: JobIdentity): Promise<void> => leftJobs().leave(job, false);

  it('a job is adopted whose reader is dead, once: a repeat of the call gets the same reply, another retry does not', async () => {
    const job = await readBy('api-dead');
    assert.equal(await adopt(job), true);
    assert.equal(await adopt(job), true);
    assert.equal(await adopt(job, { retry: 'another' }), false);
    assert.equal(await jobs.redis.hget(jobKeys.state(job.id), 'readers'), readerOf('api-mine'));
  });

  it('a job whose reader is alive is not adopted, unless its caller has left', async () => {
    const job = await readBy('api-alive');
    assert.equal(await adopt(job), false);
    await leave(job);
    assert.equal(await adopt(job), true);
  });

  it('a job whose first reader, of its caller, is dead is adopted from others that watch it, and these stay its readers', async () => {
    const [dead, mine, alive] = ['api-dead', 'api-mine', 'api-alive'].map(readerOf) as [string, string, string];
    const [lost, read, ended] = await Promise.all([readBy('api-dead'), readBy('api-alive'), readBy('api-dead')]);
    for (const job of [lost, ended])
      await jobs.redis.hset(jobKeys.state(job.id), 'readers', `${dead} ${alive} ${mine}`);
    await jobs.redis.hset(jobKeys.state(read.id), 'readers', `${alive} ${dead}`);
    assert.equal((await jobs.end(ended, { attempt: 1 })).verdict, 'finished');
    for (const job of [lost, ended]) {
      assert.equal(await adopt(job), true);
      assert.equal(await jobs.redis.hget(jobKeys.state(job.id), 'readers'), `${mine} ${alive}`);
    }
    assert.equal(await adopt(read), false);
  });

  it('a process whose own subscription is missing or new takes no other process for dead', async () => {
    const job = await readBy('api-dead');
    assert.equal(await adopt(job, { isLongSubscribed: false }), false);
    assert.equal(await adopt(job, { process: 'api-cut-off' }), false);
    assert.equal(await adopt(job), true);
  });

  it('an ended job is adopted if it completed, the process of its caller did not hear its end, and its log is there', async () => {
    const [unheard, heard, cancelled, unlogged] = await Promise.all([
      readBy('api-dead'),
      readBy('api-alive'),
      readBy('api-dead'),
      readBy('api-dead'),
    ]);
    for (const job of [unheard, heard, unlogged])
      assert.equal((await jobs.end(job, { attempt: 1 })).verdict, 'finished');
    await jobs.end(cancelled, { outcome: 'cancelled' });
    await jobs.redis.hset(jobKeys.state(heard.id), 'readers', readerOf('api-dead'));
    await jobs.redis.del(jobKeys.log(unlogged.id));
    assert.equal(await adopt(heard), false);
    assert.equal(await adopt(cancelled), false);
    assert.equal(await adopt(unlogged), false);
    assert.equal(await adopt(unheard), true);
  });

  it('a job that Redis does not have is neither left nor adopted', async () => {
    const job = jobs.identity();
    await leave(job);
    assert.equal(await adopt(job), false);
    assert.equal(await jobs.redis.exists(jobKeys.state(job.id)), 0);
  });

  it('a job whose caller has left is cancelled only as long as no retry has adopted it', async () => {
    const job = await readBy('api-alive');
    const left = leftJobs();
    await left.leave(job, true);
    assert.equal(await adopt(job), true);
    // It waits no longer.
    await left.close();
    assert.equal((await readJobState(jobs.redis, job.id))?.outcome, undefined);
    await left.leave(job, true);
    assert.equal((await readJobState(jobs.redis, job.id))?.outcome, 'cancelled');
  });

  it('a job that its retry has left, too, waits for the next one from then on', async () => {
    const job = await readBy('api-alive');
    const [first, second] = [leftJobs(), leftJobs()];
    await first.leave(job, true);
    assert.equal(await adopt(job), true);
    await second.leave(job, true);
    await first.close();
    assert.equal((await readJobState(jobs.redis, job.id))?.outcome, undefined);
    await second.close();
    assert.equal((await readJobState(jobs.redis, job.id))?.outcome, 'cancelled');
  });
});

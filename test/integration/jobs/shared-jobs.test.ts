import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { SharedJobs, type SharedJobsDependencies } from '../../../api/replies/shared/shared-jobs.ts';
import { callerLeft } from '../../../shared/jobs/end-errors.ts';
import { readerOf } from '../../../shared/jobs/inbox.ts';
import { createJobState, type JobIdentity } from '../../../shared/jobs/job-state.ts';
import { jobKeys } from '../../../shared/redis/keys.ts';
import type { RedisClient } from '../../../shared/redis/redis.ts';
import { createLogger } from '../../../shared/runtime/log.ts';
import { eventually } from '../../support/eventually.ts';
import { JobFixture } from '../../support/faults/job-fixture.ts';

type Call = (...args: unknown[]) => Promise<unknown>;

describe('SharedJobs', () => {
  let jobs: JobFixture;
  before(async () => {
    jobs = await JobFixture.start();
  });
  after(() => jobs.stop());

  const { log } = createLogger('silent', 'test');
  const open = (process: string, redis: RedisClient = jobs.redis): SharedJobs =>
    new SharedJobs({
      ...{ redis, isCluster: false, log, processId: process },
      clock: { now: Date.now },
    } as SharedJobsDependencies);
  const leaving = { error: callerLeft() };

  /** A job that a request of a process has made. */
  async function made(by: SharedJobs, process: string, isKept = false): Promise<JobIdentity> {
    const job = jobs.identity();
    await createJobState(jobs.redis, job, readerOf(process), undefined, by.make(job.id, isKept));
    await jobs.take(job);
    return job;
  }

  const cancel = async (job: JobIdentity) => (await jobs.end(job, { outcome: 'cancelled', guard: 'unshared' })).verdict;
  const outcomeOf = (job: JobIdentity) => jobs.redis.hget(jobKeys.state(job.id), 'terminal');
  const sharersOf = async (job: JobIdentity): Promise<string[]> =>
    (await jobs.redis.hkeys(jobKeys.state(job.id))).filter((field) => field.startsWith('sharer:'));

  it('a job is cancelled when its last sharer leaves, of whichever process, and cannot be before', async () => {
    const [one, other] = [open('api-one'), open('api-other')];
    const job = await made(one, 'api-one');
    assert.equal(await cancel(job), 'refused');
    assert.equal(await other.join(job, false), true);
    assert.equal(await other.join(job, false), true);
    await one.leave(job, leaving);
    await other.leave(job, leaving);
    assert.equal(await cancel(job), 'refused');
    assert.deepEqual(await sharersOf(job), [`sharer:${readerOf('api-other')}`]);
    await other.leave(job, leaving);
    assert.equal(await outcomeOf(job), 'cancelled');
  });

  it('an ended job is not joined, and one that Redis does not have is not made', async () => {
    const one = open('api-one');
    const job = await made(one, 'api-one');
    await one.leave(job, leaving);
    assert.equal(await open('api-other').join(job, false), false);
    const unknown = jobs.identity();
    assert.equal(await one.join(unknown, false), false);
    assert.equal(await jobs.redis.exists(jobKeys.state(unknown.id)), 0);
  });

  it('a job that goes on without its callers is never cancelled for them, whoever of them says so', async () => {
    const one = open('api-one');
    const job = await made(one, 'api-one', true);
    await one.leave(job, leaving);
    assert.equal(await cancel(job), 'refused');
    const joined = await made(one, 'api-one');
    const other = open('api-other');
    await other.join(joined, true);
    await one.leave(joined, leaving);
    await other.leave(joined, leaving);
    assert.equal(await cancel(joined), 'refused');
  });

  it('a leave that Redis sees late, after a later join, takes back nothing', async () => {
    let held: (() => void) | undefined;
    // As a failover does: a call is sent again after one that followed it.
    const late = new Proxy(jobs.redis, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        if (name !== 'sluice:leave-shared') return (value as Call).bind(target);
        return async (...args: unknown[]) => {
          await new Promise<void>((resolve) => {
            held = resolve;
          });
          return (value as Call).call(target, ...args);
        };
      },
    });
    // The script is known before.
    const known = open('api-known');
    await known.leave(await made(known, 'api-known'), leaving);
    const one = open('api-one', late);
    const job = await made(one, 'api-one');
    const left = one.leave(job, leaving);
    assert.equal(await one.join(job, false), true);
    held?.();
    await left;
    assert.equal(await cancel(job), 'refused');
    assert.deepEqual(await sharersOf(job), [`sharer:${readerOf('api-one')}`]);
    const again = one.leave(job, leaving);
    held?.();
    await again;
    assert.equal(await outcomeOf(job), 'cancelled');
  });

  it('a job whose last sharer has left while Redis refused that is cancelled later', async (t) => {
    let refuses = true;
    const refusing = new Proxy(jobs.redis, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        if (name === 'sluice:leave-shared' && refuses) return () => Promise.reject(new Error('Redis is away'));
        return (value as Call).bind(target);
      },
    });
    const known = open('api-known');
    await known.leave(await made(known, 'api-known'), leaving);
    const one = open('api-one', refusing);
    const job = await made(one, 'api-one');
    t.mock.timers.enable({ apis: ['setTimeout'] });
    await one.leave(job, leaving);
    refuses = false;
    assert.equal(await outcomeOf(job), null);
    t.mock.timers.tick(60_000);
    t.mock.timers.reset();
    await eventually(async () => assert.equal(await outcomeOf(job), 'cancelled'));
    await one.close();
  });

  it('a job without sharers waits for a client that may come back, and is cancelled at once when its process stops', async () => {
    const [one, other] = [open('api-one'), open('api-other')];
    const job = await made(one, 'api-one');
    await one.leave(job, { ...leaving, patienceMs: 60_000 });
    assert.equal(await outcomeOf(job), null);
    assert.equal(await other.join(job, false), true);
    await one.close();
    assert.equal(await outcomeOf(job), null);
    await other.leave(job, { ...leaving, patienceMs: 60_000 });
    await other.close();
    assert.equal(await outcomeOf(job), 'cancelled');
  });

  it('a job that its last sharer leaves again, on another process, waits for a client from then on', async () => {
    const [one, other] = [open('api-one'), open('api-other')];
    const job = await made(one, 'api-one');
    await one.leave(job, { ...leaving, patienceMs: 60_000 });
    assert.equal(await other.join(job, false), true);
    await other.leave(job, { ...leaving, patienceMs: 60_000 });
    // Its wait is over.
    await one.close();
    assert.equal(await outcomeOf(job), null);
    await other.close();
    assert.equal(await outcomeOf(job), 'cancelled');
  });
});

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import { admission, knowCaller } from '../support/admission.ts';
import { eventually } from '../support/eventually.ts';
import { JobFixture } from '../support/faults/job-fixture.ts';
import { loadProduct } from '../support/gateway.ts';
import { refusals, timesAnswered, wantingReplicas } from '../support/redis-refusals.ts';

const { accountKeys, jobKeys } = await loadProduct<typeof import('../../shared/redis/keys.ts')>('shared/redis/keys');
const { isRefusal, refusalCodes, untilAccepted } =
  await loadProduct<typeof import('../../shared/redis/script.ts')>('shared/redis/script');
const { readJobState, createJobState } =
  await loadProduct<typeof import('../../shared/jobs/job-state.ts')>('shared/jobs/job-state');
const { releaseLease } = await loadProduct<typeof import('../../shared/jobs/attempt.ts')>('shared/jobs/attempt');
const { storeTask } = await loadProduct<typeof import('../../shared/jobs/store-task.ts')>('shared/jobs/store-task');
const { storeUsage } = await loadProduct<typeof import('../../shared/jobs/store-usage.ts')>('shared/jobs/store-usage');
const { pause } = await loadProduct<typeof import('../../shared/queue/pause.ts')>('shared/queue/pause');
const { expireStates, settle, freeSlot } = await loadProduct<typeof import('../../shared/jobs/settlement/settle.ts')>(
  'shared/jobs/settlement/settle',
);
const { admit } = await loadProduct<typeof import('../../api/admission/admit.ts')>('api/admission/admit');

let jobs: JobFixture;

before(async () => {
  jobs = await JobFixture.start();
});

after(() => jobs?.stop());

const task = { vendor: 'openai', account: 'one', model: 'sora-2', task: 'video_1', attempt: 1, beganAt: 1000 };

async function begun(): Promise<JobIdentity> {
  const job = await jobs.create({ capability: 'video' });
  await jobs.take(job, { repeatable: false });
  return job;
}

function ended(job: JobIdentity) {
  return {
    ...{ ...job, jobId: job.id, outcome: 'failed' as const, errorCode: 'server_error' as const, began: true },
    ...{ record: `{"id":"${job.id}"}`, cost: undefined, tokens: undefined },
  };
}

/** Every step of a job that writes, but its end: what comes before it, the step, and what it answers once it is let. */
const steps: Record<string, { parse: () => Promise<JobIdentity>; step: (job: JobIdentity) => Promise<unknown> }> = {
  'create state': {
    parse: async () => jobs.identity(),
    step: async (job) => {
      await createJobState(jobs.redis, job, 'api-reader');
      return (await readJobState(jobs.redis, job.id))?.id === job.id && 'ok';
    },
  },
  begin: { parse: () => jobs.create(), step: async (job) => (await jobs.take(job)).verdict === 'run' && 'ok' },
  append: { parse: begun, step: (job) => jobs.write(job, 1, 1, ['a', 'b']) },
  renew: { parse: begun, step: (job) => jobs.renew(job) },
  'store task': { parse: begun, step: (job) => storeTask(jobs.redis, job.id, task) },
  pause: {
    parse: begun,
    step: ({ id: jobId }) =>
      pause(jobs.redis, { jobId, attempt: 1, progress: 5, dueAt: 1, lifetimeMs: 60_000, isCluster: false }),
  },
  release: {
    parse: begun,
    step: async (job) => {
      assert.equal(await releaseLease(jobs.redis, job.id, 1), 'released');
      return 'ok';
    },
  },
};

describe('script calls that Redis rejects temporarily', () => {
  for (const { code, begin, end } of refusals) {
    test(`every step of a job that Redis rejects with ${code} succeeds once Redis accepts writes again`, {
      timeout: 30_000,
    }, async () => {
      const names = Object.keys(steps);
      const parsed = new Map<string, JobIdentity>();
      for (const name of names) parsed.set(name, (await steps[name]?.parse()) as JobIdentity);
      const [finished, other] = [await begun(), await begun()];
      const before = await timesAnswered(jobs.redis, code);
      await begin(jobs.redis, jobs.server);
      const taken: Promise<unknown>[] = [];
      try {
        for (const name of names) taken.push(steps[name]?.step(parsed.get(name) as JobIdentity) as Promise<unknown>);
        // Several together are refused as one.
        const ends = [jobs.end(finished, { attempt: 1 }), jobs.end(other, { attempt: 1 })];
        taken.push(...ends.map(async (reply) => (await reply).verdict === 'finished' && 'ok'));
        for (const one of taken) one.catch(() => undefined);
        await eventually(async () => {
          const refused = (await timesAnswered(jobs.redis, code)) - before;
          assert.ok(refused > 2 * taken.length, `${refused} times so far`);
        });
      } finally {
        await end(jobs.redis);
      }
      assert.deepEqual(
        (await Promise.all(taken)).filter((reply) => reply !== 'ok'),
        [],
      );
      assert.equal((await readJobState(jobs.redis, finished.id))?.seq, 1);
    });
  }

  test('a job is settled and its slot freed once Redis accepts writes again', { timeout: 30_000 }, async () => {
    await knowCaller(jobs.redis);
    const job = await jobs.create();
    assert.equal((await admit(jobs.redis, admission(job))).verdict, 'admitted');
    await jobs.end(job);
    const before = await timesAnswered(jobs.redis, wantingReplicas.code);
    await wantingReplicas.begin(jobs.redis, jobs.server);
    const usage = storeUsage(jobs.redis, job.id, { usage: '{}', cost: undefined });
    const done = Promise.all([freeSlot(jobs.redis, ended(job)), settle(jobs.redis, [ended(job)]), usage]);
    done.catch(() => undefined);
    try {
      await eventually(async () =>
        assert.ok((await timesAnswered(jobs.redis, wantingReplicas.code)) > before + 6, 'not refused yet'),
      );
    } finally {
      await wantingReplicas.end(jobs.redis);
    }
    await done;
    assert.deepEqual(await jobs.redis.zrange(accountKeys.holds('account'), '0', '-1'), []);
    assert.equal(await jobs.redis.xlen(accountKeys.outbox('account')), 1);
  });

  test('the state of a settled job is marked and expires once Redis accepts writes again', async () => {
    const job = await jobs.create();
    await jobs.end(job);
    const before = await timesAnswered(jobs.redis, wantingReplicas.code);
    await wantingReplicas.begin(jobs.redis, jobs.server);
    const done = expireStates(jobs.redis, [ended(job)]);
    done.catch(() => undefined);
    try {
      await eventually(async () =>
        assert.ok((await timesAnswered(jobs.redis, wantingReplicas.code)) > before, 'not refused yet'),
      );
    } finally {
      await wantingReplicas.end(jobs.redis);
    }
    await done;
    assert.equal(await jobs.redis.hget(jobKeys.state(job.id), 'settled'), '1');
    assert.ok((await jobs.redis.pttl(jobKeys.state(job.id))) <= 120_000);
  });

  test('an admission that Redis rejects fails at once, admits nothing and leaves nothing behind', async () => {
    await knowCaller(jobs.redis);
    const job = jobs.identity();
    await wantingReplicas.begin(jobs.redis, jobs.server);
    try {
      await assert.rejects(admit(jobs.redis, admission(job)), (error) => isRefusal(error));
    } finally {
      await wantingReplicas.end(jobs.redis);
    }
    assert.equal(await jobs.redis.exists(jobKeys.state(job.id)), 0);
    assert.deepEqual(await jobs.redis.zrange(accountKeys.holds('account'), '0', '-1'), []);
  });

  test('untilAccepted gives up after a time, and at once for any other error', async () => {
    let calls = 0;
    const failing = (message: string) => (): Promise<never> => {
      calls++;
      return Promise.reject(new Error(message));
    };
    await assert.rejects(untilAccepted(failing('NOREPLICAS Not enough good replicas to write.'), 100), /NOREPLICAS/);
    assert.ok(calls > 1 && calls < 6, `${calls} calls`);
    calls = 0;
    await assert.rejects(untilAccepted(failing('WRONGTYPE Operation against a key holding the wrong kind of value')));
    assert.equal(calls, 1);
    assert.ok(
      isRefusal(new Error('ERR Error running script (call to f_0): @user_script:3: -READONLY You can’t write')),
    );
    assert.ok(!isRefusal(new Error('BUSYGROUP Consumer Group name already exists')));
  });

  test('scripts and TypeScript know the same refusal codes', async () => {
    const lua = await readFile(new URL('../../shared/redis/refusal.lua', import.meta.url), 'utf8');
    const [, list = ''] = /codes = \{(.*)\}/.exec(lua) ?? [];
    assert.deepEqual(list.replaceAll("'", '').split(', '), [...refusalCodes]);
  });
});

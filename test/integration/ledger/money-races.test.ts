import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { AdmitCall } from '../../../api/admission/admit.ts';
import type { LoadGauge } from '../../../api/admission/load-gauge.ts';
import type { Submission } from '../../../api/admission/submission.ts';
import type { Services } from '../../../api/services.ts';
import type { JobIdentity } from '../../../shared/jobs/job-state.ts';
import type { Settlement } from '../../../shared/jobs/settlement/settle.ts';
import type { ShardedQueue } from '../../../shared/queue/sharded-queue.ts';
import { admission, knowCaller, unlimitedCaller } from '../../support/admission.ts';
import { JobFixture } from '../../support/faults/job-fixture.ts';
import { loadProduct } from '../../support/gateway.ts';

const { accountKeys, jobKeys, queueKeysPrefix } =
  await loadProduct<typeof import('../../../shared/redis/keys.ts')>('shared/redis/keys');
const { settle } = await loadProduct<typeof import('../../../shared/jobs/settlement/settle.ts')>(
  'shared/jobs/settlement/settle',
);
const { newJobId } = await loadProduct<typeof import('../../../shared/ids.ts')>('shared/ids');
const money = await loadProduct<typeof import('../../../shared/accounts/account-money.ts')>(
  'shared/accounts/account-money',
);
const { admit } = await loadProduct<typeof import('../../../api/admission/admit.ts')>('api/admission/admit');
const { askAdmission } =
  await loadProduct<typeof import('../../../api/admission/ask-admission.ts')>('api/admission/ask-admission');
const { PayingKeys } =
  await loadProduct<typeof import('../../../api/admission/ask-admission.ts')>('api/admission/ask-admission');
const gauges = await loadProduct<typeof import('../../../api/admission/load-gauge.ts')>('api/admission/load-gauge');

let jobs: JobFixture;
let made = 0;

before(async () => {
  jobs = await JobFixture.start();
});
after(() => jobs?.stop());

const costs = (fixed: number) => ({ fixed, outputPrice: 0, outputTokens: 0, isGiven: true });

/** An account that admission knows, and what its key may ask for. */
async function newAccount(credit: number | '', more: Partial<AdmitCall['caller']> = {}) {
  const account = `racing${++made}`;
  await knowCaller(jobs.redis, { account, credit });
  const ask = async (changed: Partial<AdmitCall> = {}, changedKey: Partial<AdmitCall['caller']> = more) => {
    const job = jobs.identity({ account });
    const reply = await admit(jobs.redis, {
      ...admission(job),
      caller: { ...unlimitedCaller, account, ...changedKey },
      ...changed,
    });
    return { ...reply, job };
  };
  const end = (job: JobIdentity, cost: number) => settle(jobs.redis, [settlementOf(job, cost)]);
  return { account, ask, end };
}

function settlementOf(job: JobIdentity, cost: number): Settlement {
  return {
    ...{ ...job, jobId: job.id, outcome: 'completed', errorCode: undefined, began: true },
    ...{ record: '', cost, tokens: undefined },
  };
}

/** Lets a process's clock be so late while it works. */
async function withClock<T>(lateMs: number, work: () => Promise<T>): Promise<T> {
  const { now } = Date;
  Date.now = () => now() - lateMs;
  try {
    return await work();
  } finally {
    Date.now = now;
  }
}

describe('budget races', () => {
  const daily = { budget: { amount: 50, period: 'day' } } as const;
  const monthly = { budget: { amount: 50, period: 'month' } } as const;

  test('a budget with a changed period is reloaded before admission and keeps what the key holds', async () => {
    const { account, ask, end } = await newAccount('', daily);
    const load = async (kind: 'day' | 'month', spent: number) => {
      const period = money.budgetPeriodAt(kind, Date.now()).name;
      await money.loadBudget(jobs.redis, { account, apiKeyId: 'key', period }, spent);
    };
    const stands = () => jobs.redis.hmget(accountKeys.budget(account, 'key'), 'spent', 'held');
    await load('day', 0);
    const first = await ask({ hold: costs(30) });
    const refused = await ask({ hold: costs(1) }, monthly);
    assert.deepEqual([first.verdict, refused.verdict, refused.detail], ['admitted', 'unloaded', 'budget']);
    await load('month', 4);
    assert.deepEqual(await stands(), ['4', '30']);
    assert.equal((await ask({ hold: costs(17) }, monthly)).verdict, 'budget');
    const between = await ask({ hold: costs(16) }, monthly);
    assert.equal(between.verdict, 'admitted');
    for (const { job } of [first, between]) await end(job, 10);
    assert.deepEqual(await stands(), ['24', '0']);
    assert.equal((await ask()).verdict, 'unloaded');
    await load('day', 24);
    assert.deepEqual(await stands(), ['24', '0']);
  });

  test('a budget counts the earlier spending of its key only for jobs created in its period', async () => {
    const { account, ask, end } = await newAccount('', {});
    const before = await ask();
    const period = money.budgetPeriodAt('day', Date.now()).name;
    await money.loadBudget(jobs.redis, { account, apiKeyId: 'key', period }, 0);
    await end(before.job, 12);
    const old = jobs.identity({ account, id: newJobId(Date.now() - 3 * 86_400_000) });
    await jobs.redis.zadd(accountKeys.holds(account), 1, `${old.id} ${account} key chat`);
    await end(old, 100);
    assert.equal(await jobs.redis.hget(accountKeys.budget(account, 'key'), 'spent'), '12');
  });

  test('a budget is not set back to an earlier period by a process whose clock is late', async () => {
    const { account, ask } = await newAccount('', daily);
    const now = Date.now();
    const period = money.budgetPeriodAt('day', now).name;
    await money.loadBudget(jobs.redis, { account, apiKeyId: 'key', period }, 0);
    assert.equal((await ask({ hold: costs(30) })).verdict, 'admitted');
    const late = await ask({ hold: costs(30), time: now - 86_400_000 });
    assert.equal(late.verdict, 'budget');
    const [stands, held] = await jobs.redis.hmget(accountKeys.budget(account, 'key'), 'period', 'held');
    assert.deepEqual([stands, held], [period, '30']);
  });

  test('a budget keeps its spending when it is loaded again, for this or an earlier period', async () => {
    const { account, ask, end } = await newAccount('', daily);
    const load = (period: string, spent: number) =>
      money.loadBudget(jobs.redis, { account, apiKeyId: 'key', period }, spent);
    const { name: period } = money.budgetPeriodAt('day', Date.now());
    await load(period, 0);
    await end((await ask({ hold: costs(30) })).job, 20);
    for (const told of [period, money.budgetPeriodAt('day', Date.now() - 86_400_000).name]) {
      await load(told, 0);
      const stands = await jobs.redis.hmget(accountKeys.budget(account, 'key'), 'period', 'spent');
      assert.deepEqual(stands, [period, '20'], told);
    }
  });
});

describe('per-minute limits', () => {
  test('a lowered token limit owes at most two minutes, not the usage under the old limit', async () => {
    const { ask } = await newAccount('', { tpm: 100_000 });
    assert.equal((await ask({ tokens: 90_000 })).verdict, 'admitted');
    const { verdict, detail } = await ask({ tokens: 10 }, { tpm: 10 });
    assert.equal(verdict, 'rate');
    assert.ok(Number(detail.split(' ')[2]) <= 120_000, detail);
  });

  test('a request limit is the same for processes whose clocks are late or ahead, and for others after them', async () => {
    const { account, ask, end } = await newAccount('', { rpm: 60 });
    for (let asked = 0; asked < 30; asked++) assert.equal((await ask()).verdict, 'admitted');
    const left = Number((await ask()).left.split(' ')[0]);
    for (const lateMs of [20_000, -660_000]) {
      const late = await withClock(lateMs, () => ask());
      assert.equal(late.verdict, 'admitted');
      assert.ok(Math.abs(Number(late.left.split(' ')[0]) - left) <= 3, `${late.left} of ${left}`);
      // What is settled by such a process moves no time either.
      await withClock(lateMs, () => end(late.job, 0));
    }
    const fields = await jobs.redis.hvals(accountKeys.rate(account, 'key'));
    for (const field of fields) {
      assert.ok(Number(field.split(' ')[1]) < Date.now() + 10_000, `${field}: nobody's time is ahead for it`);
    }
    const after = await ask();
    assert.ok(Math.abs(Number(after.left.split(' ')[0]) - left) <= 3, `${after.left} of ${left}`);
  });

  test('a request limit does not count replays of an idempotency key', async () => {
    const { account, ask } = await newAccount('', { rpm: 10 });
    const keyed = () => jobs.identity({ account, idempotency: 'hash' });
    const one = keyed();
    assert.equal((await ask({ job: one })).verdict, 'admitted');
    const counted = await jobs.redis.hgetall(accountKeys.rate(account, 'key'));
    assert.deepEqual(
      [(await ask({ job: keyed() })).verdict, (await ask({ job: keyed(), bodyHash: 'x' })).verdict],
      ['replay', 'reused'],
    );
    assert.deepEqual(await jobs.redis.hgetall(accountKeys.rate(account, 'key')), counted);
  });
});

describe('calls repeated after an interrupted connection', () => {
  test('admit and settle take effect once when they are repeated: money, budget, rates and slots', async () => {
    const caller = { budget: { amount: 500, period: 'never' }, rpm: 100, tpm: 10_000 } as const;
    const { account, ask } = await newAccount(1000, caller);
    await money.loadBudget(jobs.redis, { account, apiKeyId: 'key', period: 'never' }, 0);
    const job = jobs.identity({ account });
    const asked = () => ask({ job, hold: costs(60), tokens: 100, reader: 'reader' });
    const all = async () => {
      const keys = [accountKeys.account(account), accountKeys.budget(account, 'key')];
      return await Promise.all([...keys, accountKeys.rate(account, 'key')].map((key) => jobs.redis.hgetall(key)));
    };
    assert.equal((await asked()).verdict, 'admitted');
    const before = await all();
    assert.equal((await asked()).verdict, 'admitted');
    assert.deepEqual(await all(), before);
    const settlement = { ...settlementOf(job, 40), tokens: 50 };
    await settle(jobs.redis, [settlement, settlement]);
    const settled = await all();
    await settle(jobs.redis, [settlement]);
    assert.equal((await asked()).verdict, 'admitted');
    await settle(jobs.redis, [{ ...settlement, cost: 1 }]);
    assert.deepEqual(await all(), settled);
    assert.deepEqual([settled[0]?.charged, settled[0]?.held, settled[0]?.['n:chat']], ['40', '0', '0']);
    assert.deepEqual([settled[1]?.spent, settled[1]?.held], ['40', '0']);
    assert.equal(await jobs.redis.hexists(accountKeys.reserved(account), job.id), 0);
  });
});

describe('askAdmission', () => {
  /** Services of which admission uses these, and a job that is asked for. The account has a key of its own: its id is the same. */
  function asking(account: string, missing: () => Promise<void>, load: Partial<LoadGauge> = {}) {
    const job = jobs.identity({ account, apiKeyId: account });
    const services = {
      ...{
        redis: jobs.redis,
        processId: 'api',
        isCluster: false,
        config: { keyConcurrency: 10, queueLimit: 1000, accountQueueShare: 1 },
      },
      ...{
        load: {
          shedding: () => undefined,
          refusal: () => undefined,
          flows: () => true,
          asking: () => undefined,
          answered: () => undefined,
          fill: () => ({ waiting: 0, active: 0 }),
          beside: () => 0,
          maxWaitingOf: () => 0,
          ...load,
        },
      },
      ...{ clock: { now: () => job.createdAt, at: () => job.deadlineAt } },
      ...{ payingKeys: new PayingKeys(), accounts: { load: missing } },
    } as unknown as Services;
    const caller = { ...unlimitedCaller, account, apiKeyId: account };
    const submission = { job, caller, bodyHash: '', parsed: undefined } as unknown as Submission;
    return { job, services, submission };
  }

  test('askAdmission queues nothing before the deciding call, and then queues together with the admission', async () => {
    const account = 'missing';
    await jobs.redis.set(accountKeys.keyActive(account, account), '1');
    const left: number[] = [];
    const { job, services, submission } = asking(account, async () => {
      left.push(await jobs.redis.exists(jobKeys.state(job.id), `${queueKeysPrefix('chat')}job_${job.id}`));
      await knowCaller(jobs.redis, { account, apiKeyId: account });
    });
    const { reply } = await askAdmission(services, submission, { request: '{}' }, Number.POSITIVE_INFINITY);
    assert.deepEqual([reply.verdict, reply.isQueued, left], ['admitted', true, [0]]);
  });

  test('askAdmission asks once when nothing is missing', async () => {
    const account = 'decided';
    await knowCaller(jobs.redis, { account, apiKeyId: account });
    const { services, submission } = asking(account, () => Promise.reject(new Error('nothing is missing')));
    const { reply } = await askAdmission(services, submission, undefined, Number.POSITIVE_INFINITY);
    assert.deepEqual([reply.verdict, reply.isQueued], ['admitted', false]);
  });

  test('askAdmission gives turns to jobs that are asked for together, beyond those that a queue may take at once', async (t) => {
    const account = 'together';
    await knowCaller(jobs.redis, { account, apiKeyId: account });
    const gauge = new gauges.LoadGauge(jobs.redis, new Map(), { queueLimit: 1000, queueWaitMs: 60_000, highShare: 1 });
    t.after(() => gauge.close());
    const load: Partial<LoadGauge> = {
      flows: (capability) => gauge.flows(capability),
      asking: (job) => gauge.asking(job),
      answered: (job) => gauge.answered(job),
    };
    const askTogether = async (): Promise<number> => {
      const asked = Array.from({ length: 10 }, () => {
        const { services, submission } = asking(account, () => Promise.reject(new Error('nothing is missing')), load);
        return askAdmission(
          { ...services, config: { ...services.config, keyConcurrency: 100 } },
          submission,
          undefined,
          1e9,
        );
      });
      return (await Promise.all(asked)).filter(({ reply }) => reply.verdict === 'admitted' && reply.hasPriority).length;
    };
    assert.equal(await askTogether(), 2);
    // They are counted until they are answered: the gauge is told of none that was admitted.
    assert.equal(await askTogether(), 2);
  });

  test("askAdmission admits no more than an account's share of a queue of jobs that are asked for together", async (t) => {
    for (const account of ['sharing', 'running', 'low']) await knowCaller(jobs.redis, { account, apiKeyId: account });
    const queue = {
      waiting: async () => 100,
      depth: async () => ({ active: 10, oldestWaitMs: 60_000 }),
      progress: async () => ({ claimed: 0, lines: new Map([['other', 100]]), highLines: new Map(), beside: new Map() }),
    } as unknown as ShardedQueue;
    const limits = { queueLimit: 1000, queueWaitMs: 60_000, highShare: 1 };
    const load = new gauges.LoadGauge(jobs.redis, new Map([['chat', queue]]), limits);
    t.after(() => load.close());
    await load.refresh();
    const config = { keyConcurrency: 1000, queueLimit: 1000, accountQueueShare: 0.01 };
    const askTogether = async (account: string, count: number, more: object): Promise<number> => {
      const asked = Array.from({ length: count }, () => {
        const { services, submission } = asking(account, () => Promise.reject(new Error('nothing is missing')));
        return askAdmission({ ...services, ...more } as Services, submission, undefined, 1e9);
      });
      return (await Promise.all(asked)).filter(({ reply }) => reply.verdict === 'admitted').length;
    };
    // By several calls of the script.
    assert.equal(await askTogether('sharing', 200, { load, config }), 18);
    // Those that run already do not wait.
    assert.equal(await askTogether('running', 30, { config }), 30);
    assert.equal(await askTogether('running', 20, { load, config }), 16);
    // Nor do those of low priority that are asked for beside it, which wait elsewhere.
    assert.equal(await askTogether('low', 30, { config }), 30);
    for (let low = 0; low < 30; low++) load.asking({ capability: 'chat', account: 'low', lane: 'flex' });
    assert.equal(await askTogether('low', 1, { load, config }), 1);
  });
});

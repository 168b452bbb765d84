import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { AdmitCall, AdmitReply } from '../../../api/admission/admit.ts';
import type { JobIdentity } from '../../../shared/jobs/job-state.ts';
import type { Settlement } from '../../../shared/jobs/settlement/settle.ts';
import { admission, knowCaller, unlimitedCaller } from '../../support/admission.ts';
import { JobFixture } from '../../support/faults/job-fixture.ts';
import { loadProduct } from '../../support/gateway.ts';

const { accountKeys } = await loadProduct<typeof import('../../../shared/redis/keys.ts')>('shared/redis/keys');
const { settle } = await loadProduct<typeof import('../../../shared/jobs/settlement/settle.ts')>(
  'shared/jobs/settlement/settle',
);
const money = await loadProduct<typeof import('../../../shared/accounts/account-money.ts')>(
  'shared/accounts/account-money',
);
const { admit } = await loadProduct<typeof import('../../../api/admission/admit.ts')>('api/admission/admit');

let jobs: JobFixture;
let made = 0;

before(async () => {
  jobs = await JobFixture.start();
});
after(() => jobs?.stop());

/** A job of an account of its own, which has been given so much. */
async function newAccount(credit: number | '', more: Partial<AdmitCall['caller']> = {}) {
  const account = `account${++made}`;
  await knowCaller(jobs.redis, { account, credit });
  const caller = { ...unlimitedCaller, account, ...more };
  const ask = (
    changed: Partial<AdmitCall> = {},
    job = jobs.identity({ account }),
  ): Promise<AdmitReply & { job: JobIdentity }> =>
    admit(jobs.redis, { ...admission(job), caller, ...changed }).then((reply) => ({ ...reply, job }));
  const end = (job: JobIdentity, cost: Settlement['cost'], tokens?: number) =>
    settle(jobs.redis, [{ ...settlementOf(job), cost, tokens }]);
  const state = () => money.readAccountMoney(jobs.redis, account);
  return { account, caller, ask, end, state };
}

function settlementOf(job: JobIdentity): Settlement {
  return {
    ...{ ...job, jobId: job.id, outcome: 'completed', errorCode: undefined, began: true },
    ...{ record: `{"id":"${job.id}"}`, cost: undefined, tokens: undefined },
  };
}

const costs = (fixed: number) => ({ fixed, outputPrice: 0, outputTokens: 0, isGiven: true });

/** What the outbox tells of an account's charges. */
async function recorded(account: string): Promise<number> {
  const entries = await jobs.redis.xrange(accountKeys.outbox(account), '-', '+');
  const charges = entries.map(([, fields]) => Number(fields[fields.indexOf('c') + 1] ?? 0));
  return charges.reduce((sum, charge) => sum + charge, 0);
}

describe('balance of an account', () => {
  test('a balance is held at admission and charged the cost of the job at settlement', async () => {
    const { ask, end, state } = await newAccount(100);
    const { verdict, job } = await ask({ hold: costs(60) });
    assert.equal(verdict, 'admitted');
    assert.deepEqual(await state(), { credit: 100, charged: 0, held: 60 });
    const refused = await ask({ hold: costs(41) });
    assert.deepEqual([refused.verdict, refused.detail], ['balance', '41 40 60']);
    assert.equal((await ask({ hold: costs(101) })).detail, '101 40 0');
    await end(job, 25);
    assert.deepEqual(await state(), { credit: 100, charged: 25, held: 0 });
    assert.equal((await ask({ hold: costs(75) })).verdict, 'admitted');
  });

  test('a balance is never charged more than was held', async () => {
    const { account, ask, end, state } = await newAccount(100);
    const { job } = await ask({ hold: costs(60) });
    await end(job, 80);
    assert.deepEqual(await state(), { credit: 100, charged: 60, held: 0 });
    assert.equal(await recorded(account), 60, 'the ledger says the same');
  });

  test('a balance is charged the whole hold, once, for a job whose usage is unknown', async () => {
    const { account, ask, end, state } = await newAccount(100);
    const { job } = await ask({ hold: costs(60) });
    await end(job, 'held');
    await end(job, 'held');
    await end(job, 25);
    assert.deepEqual(await state(), { credit: 100, charged: 60, held: 0 });
    assert.equal(await recorded(account), 60, 'the ledger says the same');
  });

  test('a balance is not charged for a free job or a second settlement, and its reservation is deleted', async () => {
    const { account, ask, end, state } = await newAccount(100);
    const { job } = await ask({ hold: costs(60) });
    await end(job, undefined);
    await end(job, 60);
    assert.deepEqual(await state(), { credit: 100, charged: 0, held: 0 });
    assert.equal(await jobs.redis.hexists(accountKeys.reserved(account), job.id), 0);
  });

  test('a balance too small for the longest answer lowers the output limit, unless the client set one', async () => {
    const { ask, end, state } = await newAccount(1000);
    const hold = { fixed: 100, outputPrice: 2000, outputTokens: 4096, isGiven: false };
    const { verdict, lowered, job } = await ask({ hold });
    assert.deepEqual([verdict, lowered], ['admitted', 450]);
    assert.deepEqual(await state(), { credit: 1000, charged: 0, held: 1000 });
    const again = await ask({ hold }, job);
    assert.equal(again.lowered, 450, 'a repeat is told the same');
    await end(job, 1000);
    assert.equal((await ask({ hold })).verdict, 'balance');
    const other = await newAccount(1000);
    assert.equal((await other.ask({ hold: { ...hold, isGiven: true } })).verdict, 'balance');
    const poor = await newAccount(100 + 2 * 15);
    assert.equal((await poor.ask({ hold })).verdict, 'balance', 'fewer than 16 tokens are no answer');
  });

  test('a repeated admission gets its own job, although another one has its name by then', async () => {
    const { account, ask, end, state } = await newAccount(1000);
    // A shortened answer is not bound to its name, which the next request may get.
    const hold = { fixed: 100, outputPrice: 2000, outputTokens: 450, isGiven: false };
    const shared = () => jobs.identity({ account, idempotency: 'shared-name' });
    const [reader, bodyHash] = ['api', '-'];
    const first = await ask({ hold: { ...hold, outputTokens: 4096 }, reader, bodyHash }, shared());
    assert.deepEqual([first.verdict, first.lowered], ['admitted', 450]);
    await money.setAccountCredit(jobs.redis, account, 2000);
    const second = await ask({ hold, reader, bodyHash }, shared());
    assert.deepEqual([second.verdict, second.lowered], ['admitted', 0]);
    const again = await ask({ hold: { ...hold, outputTokens: 4096 }, reader, bodyHash }, first.job);
    assert.deepEqual([again.verdict, again.lowered], ['admitted', 450]);
    // A retry's name belongs to the newest of equal requests.
    for (const { job } of [first, second]) await end(job, 10);
    const retried = () => jobs.identity({ account, retryName: 'name' });
    const one = await ask({ hold: costs(10), reader, isRetry: true }, retried());
    await ask({ hold: costs(10), reader }, retried());
    assert.equal((await ask({ hold: costs(10), reader, isRetry: true }, one.job)).verdict, 'admitted');
    assert.deepEqual(await state(), { credit: 2000, charged: 20, held: 20 });
  });

  test('admission asks for the cost of a job only for a limited account, and refuses an unpriced one', async () => {
    const limited = await newAccount(100);
    assert.equal((await limited.ask({ hold: 'unknown' })).verdict, 'unasked');
    assert.equal((await limited.ask({ hold: 'unpriced' })).verdict, 'unpriced');
    const unlimited = await newAccount('');
    const { verdict, job } = await unlimited.ask({ hold: 'unknown' });
    assert.equal(verdict, 'admitted');
    await unlimited.end(job, 70);
    assert.deepEqual(await unlimited.state(), { credit: undefined, charged: 70, held: 0 });
    await money.setAccountCredit(jobs.redis, unlimited.account, 100);
    assert.equal((await unlimited.ask({ hold: costs(31) })).verdict, 'balance', 'what it has spent before counts');
  });

  test('a balance is loaded from the database once, and again if it changed during the load', async () => {
    const account = 'loaded';
    await jobs.redis.set(accountKeys.keyActive(account, 'key'), '1');
    const job = jobs.identity({ account });
    assert.deepEqual((await admit(jobs.redis, admission(job))).verdict, 'unloaded');
    const credits = [10, 20];
    await money.loadAccount(jobs.redis, account, 'one', async () => {
      const credit = credits.shift() as number;
      if (credit === 10) await money.setAccountCredit(jobs.redis, account, 20);
      return {
        credit,
        charged: 5,
        isSuspended: false,
        queueWeight: 1,
        queueByKey: false,
        maxPriority: 'normal' as const,
      };
    });
    const stands = { credit: 20, charged: 5, held: 0 };
    assert.deepEqual(await money.readAccountMoney(jobs.redis, account), stands);
    await money.loadAccount(jobs.redis, account, 'two', async () => ({
      credit: 7,
      charged: 7,
      isSuspended: true,
      queueWeight: 1,
      queueByKey: false,
      maxPriority: 'normal',
    }));
    assert.deepEqual(await money.readAccountMoney(jobs.redis, account), stands);
    await money.setAccountSuspended(jobs.redis, account, true);
    assert.equal((await admit(jobs.redis, admission(job))).verdict, 'suspended');
  });

  test('a balance is charged once for a job whose admission is repeated after its end', async () => {
    const { ask, end, state } = await newAccount(100);
    const first = await ask({ hold: costs(60), reader: 'reader' });
    await end(first.job, 40);
    assert.equal((await ask({ hold: costs(60), reader: 'reader' }, first.job)).verdict, 'admitted');
    await end(first.job, 40);
    assert.deepEqual(await state(), { credit: 100, charged: 40, held: 0 });
  });
});

describe('budget of an API key', () => {
  const budget = { amount: 50, period: 'month' } as const;

  test('a budget is loaded before the first job, and limits what the key spends in its period', async () => {
    const { account, ask, end, state } = await newAccount('', { budget });
    const { name } = money.budgetPeriodAt('month', Date.now());
    assert.deepEqual([(await ask({ hold: costs(30) })).verdict], ['unloaded']);
    await money.loadBudget(jobs.redis, { account, apiKeyId: 'key', period: name }, 10);
    const { verdict, job } = await ask({ hold: costs(30) });
    assert.equal(verdict, 'admitted');
    assert.deepEqual((await ask({ hold: costs(11) })).verdict, 'budget');
    await end(job, 20);
    assert.equal(await money.readBudget(jobs.redis, { account, apiKeyId: 'key', period: 'month' }), 30);
    assert.deepEqual(await state(), { credit: undefined, charged: 20, held: 0 });
    assert.equal((await ask({ hold: costs(20) })).verdict, 'admitted');
  });

  test('a budget restarts with its period, and a job of the last period is not charged to the new one', async () => {
    const { account, ask, end } = await newAccount('', { budget });
    const key = accountKeys.budget(account, 'key');
    await money.loadBudget(jobs.redis, { account, apiKeyId: 'key', period: 'month:2020-01-01' }, 50);
    const { verdict, job } = await ask({ hold: costs(50) });
    assert.equal(verdict, 'admitted');
    await jobs.redis.hset(key, 'period', 'month:2099-01-01', 'spent', 0, 'held', 0, 'from', Date.UTC(2099, 0));
    await end(job, 50);
    assert.deepEqual(await jobs.redis.hmget(key, 'spent', 'held'), ['0', '0']);
  });

  test('a budget that a clock ahead has taken into a later period is loaded again, and no such clock begins one', async () => {
    const { account, ask, end } = await newAccount('', { budget });
    const key = { account, apiKeyId: 'key', period: 'month' } as const;
    const now = money.budgetPeriodAt('month', Date.now());
    const later = money.budgetPeriodAt('month', Date.UTC(2099, 0));
    const load = (spent: number) => money.loadBudget(jobs.redis, { account, apiKeyId: 'key', period: now.name }, spent);
    await load(10);
    const { job } = await ask({ hold: costs(30) });
    const hash = accountKeys.budget(account, 'key');
    await jobs.redis.hset(hash, { period: later.name, from: later.from, spent: 0, held: 0 });
    assert.equal(await money.readBudget(jobs.redis, key), undefined, 'the ledger is asked what it has spent');
    assert.equal((await ask({ hold: costs(30) })).verdict, 'unloaded');
    await load(10);
    assert.equal((await ask({ hold: costs(11) })).verdict, 'budget', 'what runs is still held');
    await end(job, 20);
    assert.equal(await money.readBudget(jobs.redis, key), 30);
    assert.equal((await ask({ hold: costs(21), time: later.from })).verdict, 'budget');
    assert.equal((await ask({ hold: costs(20), time: later.from })).verdict, 'admitted');
    assert.equal(await jobs.redis.hget(hash, 'period'), now.name);
  });

  test('budget periods start with the day, the Monday of the week and the month, in UTC', () => {
    const time = Date.UTC(2026, 10, 22, 23, 59);
    const named = (['day', 'week', 'month', 'never'] as const).map((period) => money.budgetPeriodAt(period, time).name);
    assert.deepEqual(named, ['day:2026-11-22', 'week:2026-11-16', 'month:2026-11-01', 'never']);
  });
});

describe('rate limits of an API key', () => {
  test('a request above the rate limit is refused with the time to wait, and others show what remains', async () => {
    const { ask } = await newAccount('', { rpm: 2 });
    const left = [(await ask()).left, (await ask()).left].map((text) => text.split(' ')[0]);
    assert.deepEqual(left, ['1', '0']);
    const { verdict, detail } = await ask();
    const [what, limit, wait] = detail.split(' ');
    assert.deepEqual([verdict, what, limit], ['rate', 'requests', '2']);
    assert.ok(Number(wait) > 29_000 && Number(wait) <= 30_000, `${wait} ms`);
  });

  test('a token limit counts the actual tokens of a settled job instead of the estimate', async () => {
    const { ask, end } = await newAccount('', { tpm: 1000 });
    const { job } = await ask({ tokens: 900 });
    assert.equal((await ask({ tokens: 200 })).verdict, 'rate');
    await end(job, undefined, 100);
    const { verdict, left } = await ask({ tokens: 800 });
    assert.equal(verdict, 'admitted');
    assert.ok(Number(left.split(' ')[2]) >= 99, left);
  });

  test('a token limit owes at most two minutes when a job took more tokens than estimated', async () => {
    const { ask, end } = await newAccount('', { tpm: 1000 });
    const { job } = await ask({ tokens: 10 });
    await end(job, undefined, 1_000_000);
    const { verdict, detail } = await ask({ tokens: 1000 });
    assert.equal(verdict, 'rate');
    assert.ok(Number(detail.split(' ')[2]) <= 120_000, detail);
  });

  test('a token limit counts the tokens of a job that ran for longer than its admission is remembered', async () => {
    const { account, caller, ask, end } = await newAccount('', { tpm: 1000 });
    const { job } = await ask({ tokens: 10 });
    const rate = accountKeys.rate(account, caller.apiKeyId);
    assert.equal(await jobs.redis.del(rate), 1);
    await end(job, undefined, 5000);
    const lifetime = await jobs.redis.pttl(rate);
    assert.ok(lifetime > 120_000 && lifetime <= 180_000, `${lifetime} ms`);
    assert.equal((await ask({ tokens: 10 })).verdict, 'rate');
  });

  test('a token limit admits a request larger than a minute when nothing was used before it', async () => {
    const { ask } = await newAccount('', { tpm: 1000 });
    assert.equal((await ask({ tokens: 5000 })).verdict, 'admitted');
    assert.equal((await ask({ tokens: 1 })).verdict, 'rate');
  });

  test('a limit per minute that a clock ahead has filled is empty once that is put right', async () => {
    const { account, caller, ask, end } = await newAccount('', { rpm: 2, tpm: 1000 });
    const rate = accountKeys.rate(account, caller.apiKeyId);
    const inTenMinutes = Date.now() + 600_000;
    const { job } = await ask({ tokens: 100 });
    await jobs.redis.hset(rate, { 'requests ': `2.000 ${inTenMinutes}`, 'tokens ': `2000.000 ${inTenMinutes}` });
    assert.equal((await ask({ tokens: 1000 })).verdict, 'admitted');
    await jobs.redis.hset(rate, 'tokens ', `2000.000 ${inTenMinutes}`);
    await end(job, undefined, 400);
    const [level, at] = ((await jobs.redis.hget(rate, 'tokens ')) as string).split(' ').map(Number);
    assert.deepEqual([level, (at as number) < inTenMinutes], [300, true], 'what it took beyond its estimate');
  });

  test('a rate limit of one model does not limit another model', async () => {
    const { account, ask } = await newAccount('', { modelLimits: { 'a model': { rpm: 1, tpm: undefined } } });
    const of = (model: string, limitedAs?: string) => ask({ limitedAs }, jobs.identity({ account, model }));
    assert.equal((await of('a model', 'a model')).verdict, 'admitted');
    const { verdict, detail } = await of('an alias', 'a model');
    assert.deepEqual([verdict, detail.split(' ').at(-1)], ['rate', 'a%20model']);
    assert.equal((await of('another')).verdict, 'admitted');
  });

  test('a refused request changes neither rates nor balance', async () => {
    const { account, ask, state } = await newAccount(100, { rpm: 10 });
    assert.equal((await ask({ hold: costs(101) })).verdict, 'balance');
    assert.equal((await ask({ hold: costs(1), shedding: 'shed' })).verdict, 'shed');
    assert.equal(await jobs.redis.exists(accountKeys.rate(account, 'key')), 0);
    assert.deepEqual(await state(), { credit: 100, charged: 0, held: 0 });
  });
});

describe('priority of a job', () => {
  test('a job gets a priority when its queue does not flow', async () => {
    const { ask } = await newAccount('');
    assert.equal((await ask()).hasPriority, false);
    assert.equal((await ask({ flows: false })).hasPriority, true);
    assert.equal((await ask()).hasPriority, false);
  });

  test('a job gets a priority when its account has more than 64 unfinished jobs of its capability, until they settle', async () => {
    const { account, ask, end } = await newAccount('');
    const videos = await Promise.all(
      Array.from({ length: 65 }, () => ask({}, jobs.identity({ account, capability: 'video' }))),
    );
    assert.deepEqual(
      videos.map(({ hasPriority }) => hasPriority),
      [...Array.from({ length: 64 }, () => false), true],
    );
    assert.equal((await ask({}, jobs.identity({ account }))).hasPriority, false, 'another capability is another line');
    for (const { job } of videos.slice(0, 2)) await end(job, undefined);
    assert.equal((await ask({}, jobs.identity({ account, capability: 'video' }))).hasPriority, false);
  });
});

describe('active flag of an API key', () => {
  test('admission distinguishes a changed, a revoked and an unknown key', async () => {
    const { account, ask } = await newAccount('');
    const flag = accountKeys.keyActive(account, 'key');
    for (const [value, verdict] of [
      ['2', 'changed'],
      ['0', 'revoked'],
    ] as const) {
      await jobs.redis.set(flag, value);
      assert.equal((await ask()).verdict, verdict);
    }
    await jobs.redis.del(flag);
    assert.equal((await ask()).verdict, 'unknown');
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { JobFixture } from '../../support/faults/job-fixture.ts';
import { loadProduct } from '../../support/gateway.ts';

const { accountKeys } = await loadProduct<typeof import('../../../shared/redis/keys.ts')>('shared/redis/keys');
const { settle } = await loadProduct<typeof import('../../../shared/jobs/settlement/settle.ts')>(
  'shared/jobs/settlement/settle',
);
const money = await loadProduct<typeof import('../../../shared/accounts/account-money.ts')>(
  'shared/accounts/account-money',
);

let jobs: JobFixture;

before(async () => {
  jobs = await JobFixture.start();
});
after(() => jobs?.stop());

/** The keys named for an account. */
const keysOf = (account: string) => jobs.redis.keys(`*:${account}`);

/** Asserts that an account is loaded for good, and that no load of it is in progress. */
async function assertOnlyAccount(account: string): Promise<void> {
  const key = accountKeys.account(account);
  assert.deepEqual(await keysOf(account), [key]);
  assert.deepEqual([await jobs.redis.pttl(key), await jobs.redis.hexists(key, 'loading')], [-1, 0]);
}

/** Charges an account for a job that it holds. */
async function charge(account: string, cost: number): Promise<void> {
  const job = jobs.identity({ account });
  await jobs.redis.zadd(accountKeys.holds(account), 1, `${job.id} ${account} key chat`);
  const settlement = { ...job, jobId: job.id, outcome: 'completed', errorCode: undefined, began: true } as const;
  await settle(jobs.redis, [{ ...settlement, record: '', cost, tokens: undefined }]);
}

describe('concurrent loads of an account', () => {
  test('an account that many processes load at once is loaded with its money, and its lock is freed', async () => {
    const account = 'wanted';
    // As a database that takes one after the other.
    let reading: Promise<unknown> = Promise.resolve();
    const read = async () => {
      const turn = reading.then(() => delay(2));
      reading = turn;
      await turn;
      return {
        credit: 10,
        charged: 3,
        isSuspended: false,
        queueWeight: 1,
        queueByKey: false,
        maxPriority: 'normal' as const,
      };
    };
    const loads = Array.from({ length: 20 }, (_, loader) =>
      money.loadAccount(jobs.redis, account, `loader${loader}`, read),
    );
    await Promise.all(loads);
    assert.deepEqual(await money.readAccountMoney(jobs.redis, account), { credit: 10, charged: 3, held: 0 });
    await assertOnlyAccount(account);
  });

  test('an account changed during a load is read again by every loader', async () => {
    const account = 'changing';
    let credit = 10;
    const read = async () => {
      const before = credit;
      await delay(5);
      return {
        credit: before,
        charged: 0,
        isSuspended: false,
        queueWeight: 1,
        queueByKey: false,
        maxPriority: 'normal' as const,
      };
    };
    const loads = [0, 1, 2].map((loader) => money.loadAccount(jobs.redis, account, `loader${loader}`, read));
    await delay(2);
    credit = 20;
    await money.setAccountCredit(jobs.redis, account, 20);
    await Promise.all(loads);
    assert.equal((await money.readAccountMoney(jobs.redis, account))?.credit, 20);
    await assertOnlyAccount(account);
  });
});

describe('loads of an account that do not finish', () => {
  const failed = () => Promise.reject(new Error('the database is away'));

  test('a load that fails, or never ends, leaves no key without a lifetime in Redis', async () => {
    const account = 'unreadable';
    await assert.rejects(money.loadAccount(jobs.redis, account, 'failed', failed), /the database is away/);
    await new Promise<void>((begun) => {
      const read = () => {
        begun();
        return new Promise<never>(() => undefined);
      };
      void money.loadAccount(jobs.redis, account, 'hanging', read);
    });
    const left = await keysOf(account);
    assert.ok(left.length > 0, 'a load is in progress');
    for (const key of left) assert.ok((await jobs.redis.pttl(key)) > 0, `${key} never expires`);
  });

  test('an account loaded after a load that failed stays in Redis, and so does a charge in between', async () => {
    const account = 'readable';
    await assert.rejects(money.loadAccount(jobs.redis, account, 'failed', failed));
    await charge(account, 7);
    const key = accountKeys.account(account);
    assert.deepEqual([await jobs.redis.hget(key, 'charged'), await jobs.redis.pttl(key)], ['7', -1]);
    await money.loadAccount(jobs.redis, account, 'second', async () => ({
      credit: 10,
      charged: 7,
      isSuspended: false,
      queueWeight: 1,
      queueByKey: false,
      maxPriority: 'normal',
    }));
    await assertOnlyAccount(account);
  });

  test('a load of an account that is already loaded changes nothing, and leaves nothing', async () => {
    const account = 'loaded';
    await money.loadAccount(jobs.redis, account, 'first', async () => ({
      credit: 10,
      charged: 0,
      isSuspended: false,
      queueWeight: 1,
      queueByKey: false,
      maxPriority: 'normal',
    }));
    await charge(account, 7);
    await money.loadAccount(jobs.redis, account, 'late', async () => ({
      credit: 5,
      charged: 0,
      isSuspended: true,
      queueWeight: 1,
      queueByKey: false,
      maxPriority: 'normal',
    }));
    await assertOnlyAccount(account);
    assert.deepEqual(await money.readAccountMoney(jobs.redis, account), { credit: 10, charged: 7, held: 0 });
  });

  test('a load that outlives its lifetime loads nothing that it read before a change', async () => {
    const account = 'slow';
    let reads = 0;
    const read = async () => {
      if (reads++ > 0)
        return {
          credit: 20,
          charged: 0,
          isSuspended: false,
          queueWeight: 1,
          queueByKey: false,
          maxPriority: 'normal' as const,
        };
      // The lifetime ends, the account is changed, and another process begins a load of its own.
      await jobs.redis.del(...(await keysOf(account)));
      await money.setAccountCredit(jobs.redis, account, 20);
      await assert.rejects(money.loadAccount(jobs.redis, account, 'other', failed));
      return {
        credit: 10,
        charged: 0,
        isSuspended: false,
        queueWeight: 1,
        queueByKey: false,
        maxPriority: 'normal' as const,
      };
    };
    await money.loadAccount(jobs.redis, account, 'slow', read);
    assert.deepEqual([(await money.readAccountMoney(jobs.redis, account))?.credit, reads], [20, 2]);
    await assertOnlyAccount(account);
  });
});

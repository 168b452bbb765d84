import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { Registry } from 'prom-client';
import type { Caller } from '../../../api/auth/caller.ts';
import type { OutboxConsumer as Consumer } from '../../../api/ledger/outbox/outbox-consumer.ts';
import type { RedisWatch as Watch } from '../../../api/ledger/redis-watch.ts';
import type { Database } from '../../../shared/database/database.ts';
import type { JobIdentity } from '../../../shared/jobs/job-state.ts';
import type { JobRecord } from '../../../shared/jobs/settlement/outbox.ts';
import type { RedisClock as Clock } from '../../../shared/redis/redis-clock.ts';
import { databaseSettings } from '../../support/database-settings.ts';
import { eventually } from '../../support/eventually.ts';
import { JobFixture } from '../../support/faults/job-fixture.ts';
import { loadProduct } from '../../support/gateway.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const { accountKeys, jobKeys, raisedKey } =
  await loadProduct<typeof import('../../../shared/redis/keys.ts')>('shared/redis/keys');
const { openDatabase } =
  await loadProduct<typeof import('../../../shared/database/database.ts')>('shared/database/database');
const { createLogger } = await loadProduct<typeof import('../../../shared/runtime/log.ts')>('shared/runtime/log');
const { createApiMetrics } =
  await loadProduct<typeof import('../../../shared/runtime/metrics.ts')>('shared/runtime/metrics');
const { recordText } = await loadProduct<typeof import('../../../shared/jobs/settlement/outbox.ts')>(
  'shared/jobs/settlement/outbox',
);
const { settle, settleNow } = await loadProduct<typeof import('../../../shared/jobs/settlement/settle.ts')>(
  'shared/jobs/settlement/settle',
);
const money = await loadProduct<typeof import('../../../shared/accounts/account-money.ts')>(
  'shared/accounts/account-money',
);
const { raiseBudgets, raiseCharges } =
  await loadProduct<typeof import('../../../shared/money/raise-to-ledger.ts')>('shared/money/raise-to-ledger');
const { ensureAccount } =
  await loadProduct<typeof import('../../../shared/accounts/accounts.ts')>('shared/accounts/accounts');
const { changeAccount } = await loadProduct<typeof import('../../../shared/accounts/change-account.ts')>(
  'shared/accounts/change-account',
);
const { createApiKey } =
  await loadProduct<typeof import('../../../shared/accounts/api-keys.ts')>('shared/accounts/api-keys');
const { changeApiKey, rotateApiKey } = await loadProduct<typeof import('../../../shared/accounts/change-api-key.ts')>(
  'shared/accounts/change-api-key',
);
const { Blobs } = await loadProduct<typeof import('../../../shared/blobs/blobs.ts')>('shared/blobs/blobs');
const { AccountLoader } =
  await loadProduct<typeof import('../../../api/admission/account-loader.ts')>('api/admission/account-loader');
const { JobLedger } = await loadProduct<typeof import('../../../api/ledger/job-ledger.ts')>('api/ledger/job-ledger');
const { OutboxGroup } = await loadProduct<typeof import('../../../api/ledger/outbox/outbox-group.ts')>(
  'api/ledger/outbox/outbox-group',
);
const { OutboxConsumer } = await loadProduct<typeof import('../../../api/ledger/outbox/outbox-consumer.ts')>(
  'api/ledger/outbox/outbox-consumer',
);
const { Quarantine } =
  await loadProduct<typeof import('../../../api/ledger/outbox/quarantine.ts')>('api/ledger/outbox/quarantine');
const { UnreadableEntries } = await loadProduct<typeof import('../../../api/ledger/outbox/unreadable-entries.ts')>(
  'api/ledger/outbox/unreadable-entries',
);
const { raiseMoney, syncRedis } =
  await loadProduct<typeof import('../../../api/ledger/sync-redis.ts')>('api/ledger/sync-redis');
const { RedisWatch, redisIdentity } =
  await loadProduct<typeof import('../../../api/ledger/redis-watch.ts')>('api/ledger/redis-watch');

const { RedisClock } =
  await loadProduct<typeof import('../../../shared/redis/redis-clock.ts')>('shared/redis/redis-clock');

const { log } = createLogger('silent', 'test');
const hour = 3_600_000;

let jobs: JobFixture;
let clock: Clock;
let db: Database;
let dataDir: string;
let ledger: InstanceType<typeof JobLedger>;
let account: string;
let made = 0;
const consumers: Consumer[] = [];
const late: string[] = [];

before(async () => {
  jobs = await JobFixture.start();
  clock = await RedisClock.open(jobs.redis);
});
after(async () => {
  clock?.close();
  await jobs?.stop();
});

beforeEach(async () => {
  await jobs.redis.flushall();
  late.length = 0;
  dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-raise-'));
  db = await openDatabase(await databaseSettings(dataDir));
  const viewOf = () => ({ stream: () => () => [], held: () => '' });
  const onLate = (records: readonly JobRecord[]) => {
    late.push(...records.map(({ id }) => id));
    raiseMoney(db, jobs.redis, [...new Set(records.map((record) => record.account))]).catch(() => undefined);
  };
  const options = { db, redis: jobs.redis, blobs: await Blobs.open(dataDir), retentionMs: 24 * hour, blobMs: hour };
  ledger = new JobLedger({ ...options, viewOf, metrics: createApiMetrics(new Registry()), log, onLate });
  account = `raised${++made}`;
  await ensureAccount(db, { id: account, name: 'Account', isUnlimited: true });
  await jobs.redis.hset(accountKeys.account(account), 'credit', '', 'charged', 0);
});
afterEach(async () => {
  await Promise.all(consumers.splice(0).map((consumer) => consumer.close(2000)));
  await db.destroy();
  await rm(dataDir, { recursive: true, force: true });
});

const charged = async () => Number(await jobs.redis.hget(accountKeys.account(account), 'charged'));
const spent = async (apiKeyId = 'key') => Number(await jobs.redis.hget(accountKeys.budget(account, apiKeyId), 'spent'));
const outbox = () => accountKeys.outbox(account);

function consume(name: string): void {
  consumers.push(
    new OutboxConsumer({
      ...{
        group: new OutboxGroup({ redis: jobs.redis, isCluster: false, name }),
        isCluster: false,
        store: ledger,
        log,
      },
      ...{ quarantine: new Quarantine(jobs.redis), unreadable: new UnreadableEntries(log), takeOverRoundMs: 50 },
    }),
  );
}

function settlementOf(job: JobIdentity, cost: number | 'held') {
  const record = recordText({
    ...job,
    ...{ beganAt: job.createdAt, endedAt: job.createdAt, vendor: 'sandbox', outcome: 'completed' },
    ...{ errorCode: undefined, attempts: 1, usage: undefined },
  });
  const end = { outcome: 'completed', errorCode: undefined, began: true, cost, tokens: undefined } as const;
  return { ...job, ...end, jobId: job.id, record };
}

const memberOf = (job: JobIdentity) => `${job.id} ${job.account} ${job.apiKeyId} chat`;

/** A job with a hold, as it stands when its worker has finished it. */
async function endedJob(more: Partial<JobIdentity> = {}): Promise<JobIdentity> {
  const job = await jobs.create({ account, ...more });
  await jobs.take(job);
  await jobs.redis.zadd(accountKeys.holds(account), 1, memberOf(job));
  await jobs.end(job, { attempt: 1 });
  return job;
}

/** Settles a new job. */
async function spend(cost: number, more: Partial<JobIdentity> = {}): Promise<JobIdentity> {
  const job = await endedJob(more);
  await settle(jobs.redis, [settlementOf(job, cost)]);
  return job;
}

async function recordsOf(stream: string): Promise<JobRecord[]> {
  const { parseRecord } = await loadProduct<typeof import('../../../shared/jobs/settlement/outbox.ts')>(
    'shared/jobs/settlement/outbox',
  );
  const entries = await jobs.redis.xrange(stream, '-', '+');
  return entries.flatMap(([, [, record, , cost]]) => parseRecord(record as string, cost) ?? []);
}

/** Brings what the outbox holds into the ledger, and leaves it in the outbox. */
async function writeAll(): Promise<void> {
  await ledger.write(await recordsOf(outbox()));
}

const recorded = async () =>
  (await db.selectFrom('jobs').select('cost').where('account_id', '=', account).execute()).reduce(
    (sum, { cost }) => sum + (cost ?? 0),
    0,
  );
const isDrained = async (): Promise<void> => assert.equal(await jobs.redis.xlen(outbox()), 0);

describe('a Redis that lost its last writes', () => {
  test('raiseCharges raises the charges of an account to ledger plus outbox, once, whoever calls it', async () => {
    for (const cost of [100, 20]) await spend(cost);
    await writeAll();
    // The first is in the ledger and still in the outbox, the second is in the ledger only, the third in the outbox only.
    const [, second] = await jobs.redis.xrange(outbox(), '-', '+');
    await jobs.redis.xdel(outbox(), second?.[0] as string);
    await spend(3);
    assert.equal(await charged(), 123);
    await raiseCharges(db, jobs.redis, [account]);
    assert.equal(await charged(), 123, 'nothing was lost');
    await jobs.redis.hset(accountKeys.account(account), 'charged', 15);
    await Promise.all(Array.from({ length: 5 }, () => raiseCharges(db, jobs.redis, [account])));
    assert.equal(await charged(), 123);
    await raiseCharges(db, jobs.redis, [account]);
    assert.equal(await charged(), 123);
  });

  test('raiseCharges raises the accounts of every tag, also if the ledger of one changes at each of its readings', async () => {
    let quiet = account;
    while (accountKeys.tag(quiet) === accountKeys.tag(account)) quiet = `quiet${++made}`;
    await ensureAccount(db, { id: quiet, name: 'Account', isUnlimited: true });
    for (const id of [account, quiet]) {
      await spend(100, { account: id });
      await ledger.write(await recordsOf(accountKeys.outbox(id)));
      await jobs.redis.hset(accountKeys.account(id), 'credit', '', 'charged', 0);
    }
    let more = 0;
    const busy = db.withPlugin({
      transformQuery: ({ node }) => node,
      transformResult: async ({ result }) => {
        const rows = result.rows.map((row) =>
          row.account_id === account ? { ...row, cost: Number(row.cost) + ++more } : row,
        );
        return { ...result, rows };
      },
    });
    await raiseCharges(busy as Database, jobs.redis, [account, quiet]);
    assert.equal(Number(await jobs.redis.hget(accountKeys.account(quiet), 'charged')), 100);
    assert.ok((await charged()) >= 100);
  });

  test('raiseCharges never lowers charges, and ignores an account that Redis does not know', async () => {
    await spend(10);
    await writeAll();
    await jobs.redis.hset(accountKeys.account(account), 'charged', 500);
    await raiseCharges(db, jobs.redis, [account, 'nobody']);
    assert.equal(await charged(), 500);
    assert.equal(await jobs.redis.exists(accountKeys.account('nobody')), 0);
  });

  test('raiseCharges is exact while jobs are settled and recorded and three processes call it', async () => {
    consume('one');
    consume('two');
    let total = 0;
    let lost = 0;
    const until = Date.now() + 3000;
    const spending = (async () => {
      for (let cost = 1; Date.now() < until; cost++) {
        await Promise.all([spend(cost), spend(cost)]);
        total += 2 * cost;
        if (cost % 40 === 0) await delay(120);
      }
    })();
    const raising = Array.from({ length: 3 }, async () => {
      while (Date.now() < until) {
        await raiseCharges(db, jobs.redis, [account]);
        await delay(5);
      }
    });
    const losing = (async () => {
      while (Date.now() < until - 500) {
        await delay(200);
        lost += 7;
        await jobs.redis.hincrby(accountKeys.account(account), 'charged', -7);
      }
    })();
    await Promise.all([spending, losing, ...raising]);
    await eventually(isDrained);
    assert.equal(await recorded(), total);
    assert.ok((await charged()) <= total, 'nothing was charged twice');
    await raiseCharges(db, jobs.redis, [account]);
    assert.equal(await charged(), total);
    assert.ok(lost > 0);
  });

  test('syncRedis drops a restored hold of a recorded job, which is not charged again when it settles again', async () => {
    const job = await spend(40);
    consume('one');
    await eventually(isDrained);
    // As it was before the settlement, its record's outbox too.
    await jobs.redis.hset(accountKeys.account(account), 'charged', 0, 'held', 60, 'n:chat', 1);
    await jobs.redis.hset(accountKeys.reserved(account), job.id, '60 0 0 - ');
    await jobs.redis.zadd(accountKeys.holds(account), 1, memberOf(job));
    await jobs.redis.hdel(jobKeys.state(job.id), 'settled');
    const living = await endedJob();
    await syncRedis(db, jobs.redis);
    assert.deepEqual(await jobs.redis.zrange(accountKeys.holds(account), '0', '-1'), [memberOf(living)]);
    const stands = await jobs.redis.hmget(accountKeys.account(account), 'charged', 'held', 'n:chat');
    assert.deepEqual(stands, ['40', '0', '0']);
    await settleNow(jobs.redis, settlementOf(job, 40));
    await eventually(isDrained);
    await raiseCharges(db, jobs.redis, [account]);
    assert.deepEqual([await charged(), await recorded(), late], [40, 40, []]);
  });

  /** A key with a budget of a month, of which so much was spent and is in the ledger. Returns its id. */
  async function keyWithRecorded(spentBefore: number): Promise<string> {
    const budget = { amount: 1000, period: 'month' } as const;
    const { id } = await createApiKey(db, { accountId: account, name: 'key', budget } as never);
    const { name } = money.budgetPeriodAt('month', Date.now());
    await money.loadBudget(jobs.redis, { account, apiKeyId: id, period: name }, 0);
    await spend(spentBefore, { apiKeyId: id });
    await writeAll();
    return id;
  }

  test('syncRedis restores accounts and budgets from the database', async () => {
    const id = await keyWithRecorded(70);
    await spend(5, { apiKeyId: id });
    assert.equal(await spent(id), 75);
    await jobs.redis.hset(accountKeys.budget(account, id), 'spent', 1);
    await changeAccount(db, jobs.redis, account, { isSuspended: true });
    await jobs.redis.hset(accountKeys.account(account), 'suspended', '0', 'credit', 5, 'charged', 2);
    await syncRedis(db, jobs.redis);
    const stands = await jobs.redis.hmget(accountKeys.account(account), 'suspended', 'credit', 'charged');
    assert.deepEqual([...stands, await spent(id)], ['1', '', '75', 75]);
  });

  test('syncRedis does not let a budget that Redis has from an earlier period begin anew with nothing spent', async () => {
    const budget = { amount: 1000, period: 'month' } as const;
    const { id } = await createApiKey(db, { accountId: account, name: 'key', budget } as never);
    const now = money.budgetPeriodAt('month', Date.now());
    await spend(70, { apiKeyId: id });
    await writeAll();
    await spend(5, { apiKeyId: id });
    // As in a copy of Redis from before the month began: an admission would start the month at 0.
    const before = money.budgetPeriodAt('month', now.from - 1);
    const stale = { period: before.name, from: before.from, spent: 900, held: 0 };
    await jobs.redis.hset(accountKeys.budget(account, id), stale);
    await syncRedis(db, jobs.redis);
    const caller = { account, apiKeyId: id, budget } as unknown as Caller;
    const known = await jobs.redis.hget(accountKeys.budget(account, id), 'period');
    assert.equal(known, null, 'admission asks for it');
    await new AccountLoader(db, jobs.redis, clock).load(caller, 'budget');
    assert.equal(await spent(id), 75);
  });

  test('a budget is raised by an api process whose own clock is months late, too', async (t) => {
    const id = await keyWithRecorded(70);
    await jobs.redis.hset(accountKeys.budget(account, id), 'spent', 1);
    const wrong = Date.now() - 100 * 24 * hour;
    t.mock.method(Date, 'now', () => wrong);
    await syncRedis(db, jobs.redis);
    assert.equal(await spent(id), 70);
  });
});

describe('a job whose hold Redis has lost', () => {
  test('a job without a hold is recorded and charged once, however often it is settled', async () => {
    const job = await endedJob();
    await jobs.redis.zrem(accountKeys.holds(account), memberOf(job));
    consume('one');
    consume('two');
    const settling = Array.from({ length: 6 }, () => settle(jobs.redis, [settlementOf(job, 40)]));
    await Promise.all(settling);
    await settleNow(jobs.redis, settlementOf(job, 40));
    await settleNow(jobs.redis, settlementOf(job, 40));
    await eventually(isDrained);
    await eventually(async () => assert.equal(await charged(), 40));
    assert.deepEqual([await recorded(), late], [40, [job.id]]);
    await raiseCharges(db, jobs.redis, [account]);
    assert.equal(await charged(), 40);
  });

  test('a job already settled but not yet marked is not charged again', async () => {
    const job = await spend(40);
    assert.equal(await jobs.redis.hget(jobKeys.state(job.id), 'settled'), null);
    await Promise.all([1, 2, 3].map(() => settle(jobs.redis, [settlementOf(job, 40)])));
    consume('one');
    consume('two');
    await eventually(isDrained);
    await delay(100);
    assert.deepEqual([await charged(), await recorded()], [40, 40]);
  });

  test('a job charged its hold is recorded with that charge when a late record is written with it', async () => {
    const job = await endedJob();
    await jobs.redis.hset(accountKeys.reserved(account), job.id, '25 0 0 - ');
    await jobs.redis.hset(accountKeys.account(account), 'held', 25);
    await settle(jobs.redis, [settlementOf(job, 'held')]);
    await settle(jobs.redis, [settlementOf(job, 'held')]);
    assert.equal(await jobs.redis.xlen(outbox()), 1);
    const [own] = await recordsOf(outbox());
    // Where much came between them the outbox has both.
    await ledger.write([own as JobRecord, { ...(own as JobRecord), cost: undefined, isLate: true }]);
    assert.deepEqual([await charged(), await recorded(), late], [25, 25, []]);
  });

  test('a job whose state is gone or settled gets no second record', async () => {
    const [gone, settled] = [await spend(1), await spend(2)];
    await jobs.redis.del(jobKeys.state(gone.id));
    await settleNow(jobs.redis, settlementOf(settled, 2));
    const length = await jobs.redis.xlen(outbox());
    await settle(jobs.redis, [settlementOf(gone, 1), settlementOf(settled, 2)]);
    assert.equal(await jobs.redis.xlen(outbox()), length);
  });

  test('a job without a hold but with a reservation is charged no more than was held', async () => {
    const job = await endedJob();
    await jobs.redis.zrem(accountKeys.holds(account), memberOf(job));
    await jobs.redis.hset(accountKeys.reserved(account), job.id, '25 0 0 - ');
    await jobs.redis.hset(accountKeys.account(account), 'held', 25);
    await settle(jobs.redis, [settlementOf(job, 40)]);
    await settle(jobs.redis, [settlementOf(job, 40)]);
    const stands = await jobs.redis.hmget(accountKeys.account(account), 'charged', 'held');
    assert.deepEqual(stands, ['25', '0']);
  });
});

describe('budget of a key in the ledger', () => {
  const monthly = { amount: 1000, period: 'month' } as const;
  const daily = { amount: 1000, period: 'day' } as const;

  async function newKey(budget: typeof monthly | undefined) {
    const { id } = await createApiKey(db, { accountId: account, name: 'key', budget } as never);
    return id;
  }
  const load = (apiKeyId: string, budget: Caller['budget']) =>
    new AccountLoader(db, jobs.redis, clock).load({ account, apiKeyId, budget } as Caller, 'budget');

  test('a budget that is removed and set again includes what was spent meanwhile', async () => {
    const id = await newKey(monthly);
    await load(id, monthly);
    await spend(10, { apiKeyId: id });
    await changeApiKey(db, jobs.redis, { id, accountId: account }, { budget: undefined });
    await spend(20, { apiKeyId: id });
    await writeAll();
    await spend(30, { apiKeyId: id });
    await changeApiKey(db, jobs.redis, { id, accountId: account }, { budget: monthly });
    assert.equal(await jobs.redis.exists(accountKeys.budget(account, id)), 0, 'it is to be asked for');
    await load(id, monthly);
    assert.equal(await spent(id), 60);
    await changeApiKey(db, jobs.redis, { id, accountId: account }, { budget: daily });
    await load(id, daily);
    await changeApiKey(db, jobs.redis, { id, accountId: account }, { budget: monthly });
    await load(id, monthly);
    assert.equal(await spent(id), 60);
  });

  test('a budget moves with its key at every rotation', async () => {
    const id = await newKey(monthly);
    await load(id, monthly);
    await spend(10, { apiKeyId: id });
    const second = await rotateApiKey(db, jobs.redis, { id, accountId: account }, 60_000);
    const secondId = second?.key.id as string;
    await writeAll();
    await spend(20, { apiKeyId: id });
    await load(secondId, monthly);
    assert.equal(await spent(secondId), 30);
    await spend(5, { apiKeyId: secondId });
    const third = await rotateApiKey(db, jobs.redis, { id: secondId, accountId: account }, 0);
    await load(third?.key.id as string, monthly);
    assert.equal(await spent(third?.key.id), 35);
  });

  test('a budget is loaded exactly while jobs of its key are settled', async () => {
    consume('one');
    const id = await newKey(monthly);
    let total = 0;
    const until = Date.now() + 1500;
    const spending = (async () => {
      for (let cost = 1; Date.now() < until; cost++) {
        await spend(cost, { apiKeyId: id });
        total += cost;
      }
    })();
    while (Date.now() < until) {
      await money.forgetBudget(jobs.redis, account, id);
      await load(id, monthly);
      await delay(60);
    }
    await spending;
    await eventually(isDrained);
    await raiseBudgets(db, jobs.redis, [{ account, apiKeyId: id, period: 'month' }], clock.now());
    assert.equal(await spent(id), total);
  });
});

describe('RedisWatch', () => {
  let server: TestRedis;
  let redis: Redis;
  const watches: Watch[] = [];
  /** What raising Redis does, and whether a database is there. */
  let raise: () => Promise<void>;
  let isThere: boolean;
  beforeEach(async () => {
    server = await startRedis({ aof: true });
    redis = new Redis(server.url, { maxRetriesPerRequest: null, retryStrategy: () => 50 });
    redis.on('error', () => undefined);
    isThere = true;
  });
  afterEach(async () => {
    await Promise.all(watches.splice(0).map((watch) => watch.close()));
    redis.disconnect();
    await server.stop();
  });

  function newWatch(): Watch {
    const isDatabaseThere = async (): Promise<boolean> => isThere;
    const watch = new RedisWatch({ redis, raise: () => raise(), isDatabaseThere, log, intervalMs: 50 });
    watches.push(watch);
    return watch;
  }

  test('RedisWatch notices a restarted Redis and retries its update until it succeeds', async () => {
    let calls = 0;
    raise = async () => {
      calls++;
      if (calls === 2) throw new Error('the database is away');
    };
    const watch = newWatch();
    await watch.raise();
    await delay(200);
    assert.equal(calls, 1);
    await server.restart();
    await eventually(() => assert.deepEqual([calls, watch.isBehind], [3, false]));
    await delay(200);
    assert.deepEqual([calls, watch.isBehind], [3, false]);
  });

  test('a restarted Redis is behind while the database is away, also while that only keeps silent, and no longer once it is raised', async () => {
    raise = async () => undefined;
    const watch = newWatch();
    await watch.raise();
    assert.equal(watch.isBehind, false);
    isThere = false;
    let bringBack = (): void => undefined;
    raise = () =>
      new Promise((resolve) => {
        bringBack = resolve;
      });
    await server.restart();
    await eventually(() => assert.equal(watch.isBehind, true));
    bringBack();
    await eventually(() => assert.equal(watch.isBehind, false));
    raise = () => Promise.reject(new Error('the database is away'));
    await server.restart();
    await eventually(() => assert.equal(watch.isBehind, true));
    raise = async () => undefined;
    await eventually(() => assert.equal(watch.isBehind, false));
  });

  test('a Redis is trusted without the database only if it is the very one that was raised last', async () => {
    assert.equal(await newWatch().trust(), false);
    raise = async () => undefined;
    await newWatch().raise();
    assert.equal(await newWatch().trust(), true);
    raise = () => Promise.reject(new Error('the database is away'));
    isThere = false;
    await server.restart();
    await eventually(async () => assert.equal(await newWatch().trust(), false));
    // What it lacks now cannot be known from itself: it has all that it had.
    assert.notEqual(await redis.get(raisedKey), null);
  });

  test('a Redis that is full is raised all the same, and another process does not trust it', async () => {
    raise = async () => undefined;
    await redis.config('SET', 'maxmemory', '1');
    const watch = newWatch();
    await watch.raise();
    assert.deepEqual([watch.isBehind, await newWatch().trust()], [false, false]);
  });

  test('a Redis that another process has raised is not behind for one that cannot reach the database', async () => {
    raise = async () => undefined;
    const watch = newWatch();
    await watch.raise();
    isThere = false;
    raise = () => Promise.reject(new Error('the database is away'));
    await server.restart();
    await eventually(() => assert.equal(watch.isBehind, true));
    await redis.set(raisedKey, await redisIdentity(redis));
    await eventually(() => assert.equal(watch.isBehind, false));
  });
});

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { Registry } from 'prom-client';
import type { AdmitReply } from '../../../api/admission/admit.ts';
import type { ApiKey } from '../../../shared/accounts/api-key.ts';
import type { Database } from '../../../shared/database/database.ts';
import type { JobIdentity } from '../../../shared/jobs/job-state.ts';
import type { RedisClock as Clock } from '../../../shared/redis/redis-clock.ts';
import { admission, knowCaller, unlimitedCaller } from '../../support/admission.ts';
import { databaseSettings } from '../../support/database-settings.ts';
import { JobFixture } from '../../support/faults/job-fixture.ts';
import { loadProduct } from '../../support/gateway.ts';

const { accountKeys, knownKey } =
  await loadProduct<typeof import('../../../shared/redis/keys.ts')>('shared/redis/keys');
const { openDatabase } =
  await loadProduct<typeof import('../../../shared/database/database.ts')>('shared/database/database');
const { createLogger } = await loadProduct<typeof import('../../../shared/runtime/log.ts')>('shared/runtime/log');
const { createApiMetrics } =
  await loadProduct<typeof import('../../../shared/runtime/metrics.ts')>('shared/runtime/metrics');
const { writeFor } =
  await loadProduct<typeof import('../../../shared/runtime/wire-version.ts')>('shared/runtime/wire-version');
const { parseRecord, recordText } = await loadProduct<typeof import('../../../shared/jobs/settlement/outbox.ts')>(
  'shared/jobs/settlement/outbox',
);
const { settle } = await loadProduct<typeof import('../../../shared/jobs/settlement/settle.ts')>(
  'shared/jobs/settlement/settle',
);
const money = await loadProduct<typeof import('../../../shared/accounts/account-money.ts')>(
  'shared/accounts/account-money',
);
const { ensureAccount } =
  await loadProduct<typeof import('../../../shared/accounts/accounts.ts')>('shared/accounts/accounts');
const { createApiKey } =
  await loadProduct<typeof import('../../../shared/accounts/api-keys.ts')>('shared/accounts/api-keys');
const { changeApiKey, rotateApiKey } = await loadProduct<typeof import('../../../shared/accounts/change-api-key.ts')>(
  'shared/accounts/change-api-key',
);
const { apiKeyOf } =
  await loadProduct<typeof import('../../../shared/accounts/api-key-row.ts')>('shared/accounts/api-key-row');
const { recallKey, rememberKey } =
  await loadProduct<typeof import('../../../shared/accounts/known-keys.ts')>('shared/accounts/known-keys');
const { Blobs } = await loadProduct<typeof import('../../../shared/blobs/blobs.ts')>('shared/blobs/blobs');
const { admit } = await loadProduct<typeof import('../../../api/admission/admit.ts')>('api/admission/admit');
const { AccountLoader } =
  await loadProduct<typeof import('../../../api/admission/account-loader.ts')>('api/admission/account-loader');
const { JobLedger } = await loadProduct<typeof import('../../../api/ledger/job-ledger.ts')>('api/ledger/job-ledger');
const { syncRedis } = await loadProduct<typeof import('../../../api/ledger/sync-redis.ts')>('api/ledger/sync-redis');
const { keyObject } = await loadProduct<typeof import('../../../api/management/keys/key-object.ts')>(
  'api/management/keys/key-object',
);
const { RedisClock } =
  await loadProduct<typeof import('../../../shared/redis/redis-clock.ts')>('shared/redis/redis-clock');

const { log } = createLogger('silent', 'test');
const hour = 3_600_000;
const releaseBefore = { oldest: 1, newest: 1 };

let jobs: JobFixture;
let clock: Clock;
let db: Database;
let dataDir: string;
let ledger: InstanceType<typeof JobLedger>;
let account: string;
let made = 0;

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
  dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-common-'));
  db = await openDatabase(await databaseSettings(dataDir));
  const viewOf = () => ({ stream: () => () => [], held: () => '' });
  const options = { db, redis: jobs.redis, blobs: await Blobs.open(dataDir), retentionMs: 24 * hour, blobMs: hour };
  ledger = new JobLedger({ ...options, viewOf, metrics: createApiMetrics(new Registry()), log });
  account = `common${++made}`;
  await ensureAccount(db, { id: account, name: 'Account', isUnlimited: true });
  await jobs.redis.hset(accountKeys.account(account), 'credit', '', 'charged', 0);
});
afterEach(async () => {
  writeFor([]);
  await db.destroy();
  await rm(dataDir, { recursive: true, force: true });
});

async function stored(id: string): Promise<ApiKey> {
  return apiKeyOf(await db.selectFrom('api_keys').selectAll().where('id', '=', id).executeTakeFirstOrThrow());
}

/** A new key with a budget of 100. Returns its id. */
async function newKey(period: 'never' | 'month' = 'never'): Promise<string> {
  const budget = { amount: 100, period };
  return (await createApiKey(db, { accountId: account, name: 'key', budget } as never)).id;
}

async function rotate(id: string, overlapMs = hour): Promise<string> {
  return (await rotateApiKey(db, jobs.redis, { id, accountId: account }, overlapMs))?.key.id as string;
}

interface Asked extends AdmitReply {
  readonly job: JobIdentity;
  /** How often its budget had to be loaded. */
  readonly loads: number;
}

/** Asks for a job that may cost so much, as an api process does. */
async function ask(id: string, cost: number): Promise<Asked> {
  const { budget, budgetId } = await stored(id);
  await knowCaller(jobs.redis, { account, apiKeyId: id });
  const caller = { ...unlimitedCaller, account, apiKeyId: id, budget, budgetId };
  const hold = { fixed: cost, outputPrice: 0, outputTokens: 0, isGiven: true };
  for (let loads = 0; ; loads++) {
    const job = jobs.identity({ account, apiKeyId: id });
    const reply = await admit(jobs.redis, { ...admission(job), caller, hold });
    if (reply.verdict !== 'unloaded' || loads > 2) return { ...reply, job, loads };
    await new AccountLoader(db, jobs.redis, clock).load(caller, reply.detail);
  }
}

async function end(job: JobIdentity, cost: number): Promise<void> {
  const record = recordText({
    ...job,
    ...{ beganAt: job.createdAt, endedAt: job.createdAt, vendor: 'sandbox', outcome: 'completed' },
    ...{ errorCode: undefined, attempts: 1, usage: undefined },
  });
  const ended = { outcome: 'completed', errorCode: undefined, began: true, cost, tokens: undefined } as const;
  await settle(jobs.redis, [{ ...job, ...ended, jobId: job.id, record }]);
}

/** A request that costs so much. */
async function spend(id: string, cost: number): Promise<void> {
  const { job, verdict } = await ask(id, cost);
  assert.equal(verdict, 'admitted', id);
  await end(job, cost);
}

/** Settles as a process of the release before, which knows only a key's own hash. */
async function endBefore(job: JobIdentity, cost: number): Promise<void> {
  const own = accountKeys.budget(account, job.apiKeyId);
  const common = await jobs.redis.hget(own, 'common');
  if (common) await jobs.redis.hdel(own, 'common');
  await end(job, cost);
  if (common) await jobs.redis.hset(own, 'common', common);
}

/** Brings what the outbox holds into the ledger. */
async function writeAll(): Promise<void> {
  const entries = await jobs.redis.xrange(accountKeys.outbox(account), '-', '+');
  await ledger.write(entries.flatMap(([, [, record, , cost]]) => parseRecord(record as string, cost) ?? []));
}

async function stands(id: string): Promise<{ spent: number; held: number }> {
  const { budget, budgetId } = await stored(id);
  const key = { account, apiKeyId: id, budgetId, period: budget?.period ?? 'never' };
  const [spent, held] = await jobs.redis.hmget(money.budgetHash(key), 'spent', 'held');
  return { spent: Number(spent), held: Number(held) };
}

describe('the budget of rotated keys', () => {
  test('all replacements of a key, also those whose text was lost, spend one budget with it', async () => {
    const first = await newKey();
    await spend(first, 10);
    const [lost, second] = [await rotate(first), await rotate(first)];
    await spend(second, 20);
    await spend(first, 5);
    await spend(lost, 15);
    const third = await rotate(second);
    await spend(third, 30);
    for (const id of [first, lost, second, third]) {
      assert.deepEqual(await stands(id), { spent: 80, held: 0 });
      assert.equal((await ask(id, 21)).verdict, 'budget', id);
    }
    await spend(first, 20);
    assert.equal((await ask(third, 1)).verdict, 'budget');
  });

  test('each of them shows what all have spent, also what the ledger does not have yet', async () => {
    const first = await newKey();
    const second = await rotate(first);
    await spend(first, 10);
    await spend(second, 20);
    await writeAll();
    await spend(second, 30);
    const shown = (await keyObject(jobs.redis, db, await stored(first))) as { budget?: { spent: number } };
    assert.equal(shown.budget?.spent, 60 / 1e9);
  });

  test('what the requests of a key hold at its rotation is held from its replacement, and released once they end', async () => {
    const first = await newKey('month');
    const { job } = await ask(first, 60);
    const second = await rotate(first);
    assert.equal((await ask(second, 41)).verdict, 'budget');
    const other = await ask(second, 30);
    assert.deepEqual(await stands(first), { spent: 0, held: 90 });
    await end(job, 50);
    assert.deepEqual(await stands(second), { spent: 50, held: 30 });
    await end(other.job, 30);
    assert.deepEqual(await stands(first), { spent: 80, held: 0 });
  });

  test('what the requests of a revoked key cost in the end is spent from the budget of its replacement', async () => {
    const first = await newKey();
    const { job } = await ask(first, 60);
    const second = await rotate(first, 0);
    await spend(second, 10);
    await end(job, 60);
    assert.deepEqual(await stands(second), { spent: 70, held: 0 });
  });

  test('each of them has its own amount, and one that is changed does not forget what was spent', async () => {
    const first = await newKey();
    const second = await rotate(first);
    await spend(first, 40);
    const { job } = await ask(first, 10);
    const budget = { amount: 70, period: 'never' } as const;
    await changeApiKey(db, jobs.redis, { id: second, accountId: account }, { budget });
    await end(job, 10);
    assert.equal((await ask(second, 21)).verdict, 'budget');
    await spend(second, 20);
    assert.deepEqual(await stands(first), { spent: 70, held: 0 });
    await spend(first, 30);
  });

  test('a key with another period counts by itself, without being loaded again at each request', async () => {
    const first = await newKey();
    const second = await rotate(first);
    await spend(first, 40);
    const budget = { amount: 100, period: 'month' } as const;
    await changeApiKey(db, jobs.redis, { id: second, accountId: account }, { budget });
    await spend(second, 10);
    await spend(first, 10);
    for (const id of [first, second, first, second]) assert.equal((await ask(id, 1)).loads, 0);
    assert.deepEqual([(await stands(first)).spent, (await stands(second)).spent], [60, 50]);
  });

  test('syncRedis raises a common budget to the ledger, and forgets one of an earlier period', async () => {
    const first = await newKey('month');
    const second = await rotate(first);
    await spend(first, 30);
    await spend(second, 20);
    await writeAll();
    const { budgetId } = await stored(second);
    const hash = money.budgetHash({ account, apiKeyId: second, budgetId, period: 'month' });
    await jobs.redis.hset(hash, 'spent', 1);
    await syncRedis(db, jobs.redis);
    assert.equal((await stands(first)).spent, 50);
    await jobs.redis.hset(hash, 'period', 'month:2020-01-01', 'spent', 0);
    await syncRedis(db, jobs.redis);
    assert.equal((await ask(second, 51)).verdict, 'budget');
    assert.equal((await stands(second)).spent, 50);
  });
});

describe('the budget of rotated keys beside the release before', () => {
  test('each key has its own while such a process runs, as that settles into it, and the common one has all of it afterwards', async () => {
    writeFor([releaseBefore]);
    const first = await newKey();
    const second = await rotate(first);
    await spend(first, 10);
    const running = await ask(second, 20);
    const late = await ask(first, 30);
    await endBefore(running.job, 20);
    assert.deepEqual(
      [await stands(first), await stands(second)],
      [
        { spent: 10, held: 30 },
        { spent: 30, held: 0 },
      ],
    );
    writeFor([]);
    assert.equal((await ask(second, 41)).verdict, 'budget');
    assert.deepEqual(await stands(first), { spent: 30, held: 30 });
    await end(late.job, 30);
    assert.deepEqual(await stands(second), { spent: 60, held: 0 });
  });

  test('after a rollback nothing is missing, nor held for ever, of what that release has settled', async () => {
    const first = await newKey();
    const second = await rotate(first);
    await spend(second, 10);
    const [running, other] = [await ask(second, 20), await ask(first, 5)];
    writeFor([releaseBefore]);
    assert.equal((await ask(second, 71)).verdict, 'budget');
    await endBefore(running.job, 20);
    await endBefore(other.job, 5);
    await writeAll();
    writeFor([]);
    assert.equal((await ask(first, 66)).verdict, 'budget');
    assert.deepEqual(await stands(first), { spent: 35, held: 0 });
    await spend(second, 65);
  });

  test('nor if none of the keys was used in that time, but an api process started', async () => {
    const first = await newKey();
    const second = await rotate(first);
    await spend(first, 10);
    const { job } = await ask(second, 20);
    writeFor([releaseBefore]);
    await syncRedis(db, jobs.redis);
    await endBefore(job, 20);
    await writeAll();
    writeFor([]);
    assert.equal((await ask(second, 71)).verdict, 'budget');
    assert.deepEqual(await stands(first), { spent: 30, held: 0 });
  });

  test('the copy of a key, for while the database is away, names its budget, and one by such a process is not used', async () => {
    const first = await newKey();
    const second = await stored(await rotate(first));
    assert.equal(second.budgetId, first);
    for (const key of [second, await stored(await newKey())]) {
      await rememberKey(jobs.redis, key);
      assert.equal((await recallKey(jobs.redis, key.hash))?.budgetId, key.budgetId);
      assert.equal((await recallKey(jobs.redis, key.hash))?.id, key.id);
      const { budgetId: _, ...copy } = JSON.parse((await jobs.redis.get(knownKey(key.hash))) as string);
      await jobs.redis.set(knownKey(key.hash), JSON.stringify(copy));
      assert.equal(await recallKey(jobs.redis, key.hash), undefined);
    }
  });

  test('a key that such a process has rotated spends the budget of the one that it replaces', async () => {
    const first = await newKey();
    await spend(first, 90);
    const second = await newKey();
    await db.updateTable('api_keys').set({ rotated_to: second }).where('id', '=', first).execute();
    assert.equal((await ask(second, 11)).verdict, 'budget');
  });
});

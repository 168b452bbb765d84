import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'kysely';
import { Registry } from 'prom-client';
import type { OutboxConsumer as Consumer } from '../../api/ledger/outbox/outbox-consumer.ts';
import type { OutboxGroupOptions } from '../../api/ledger/outbox/outbox-group.ts';
import type { Database } from '../../shared/database/database.ts';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import type { JobRecord } from '../../shared/jobs/settlement/outbox.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import { databaseSettings } from '../support/database-settings.ts';
import { eventually } from '../support/eventually.ts';
import { JobFixture } from '../support/faults/job-fixture.ts';
import { loadProduct } from '../support/gateway.ts';

const { accountKeys, quarantineKey } =
  await loadProduct<typeof import('../../shared/redis/keys.ts')>('shared/redis/keys');
const { openDatabase } =
  await loadProduct<typeof import('../../shared/database/database.ts')>('shared/database/database');
const { createLogger } = await loadProduct<typeof import('../../shared/runtime/log.ts')>('shared/runtime/log');
const { createApiMetrics } =
  await loadProduct<typeof import('../../shared/runtime/metrics.ts')>('shared/runtime/metrics');
const { recordText } = await loadProduct<typeof import('../../shared/jobs/settlement/outbox.ts')>(
  'shared/jobs/settlement/outbox',
);
const { settle } = await loadProduct<typeof import('../../shared/jobs/settlement/settle.ts')>(
  'shared/jobs/settlement/settle',
);
const { ensureAccount, findAccount } =
  await loadProduct<typeof import('../../shared/accounts/accounts.ts')>('shared/accounts/accounts');
const { Blobs } = await loadProduct<typeof import('../../shared/blobs/blobs.ts')>('shared/blobs/blobs');
const { JobLedger } = await loadProduct<typeof import('../../api/ledger/job-ledger.ts')>('api/ledger/job-ledger');
const { OutboxGroup } = await loadProduct<typeof import('../../api/ledger/outbox/outbox-group.ts')>(
  'api/ledger/outbox/outbox-group',
);
const { OutboxConsumer } = await loadProduct<typeof import('../../api/ledger/outbox/outbox-consumer.ts')>(
  'api/ledger/outbox/outbox-consumer',
);
const { Quarantine } =
  await loadProduct<typeof import('../../api/ledger/outbox/quarantine.ts')>('api/ledger/outbox/quarantine');
const { UnreadableEntries } = await loadProduct<typeof import('../../api/ledger/outbox/unreadable-entries.ts')>(
  'api/ledger/outbox/unreadable-entries',
);
const { readUsage } = await loadProduct<typeof import('../../api/ledger/usage/usage-report.ts')>(
  'api/ledger/usage/usage-report',
);

const { log } = createLogger('silent', 'test');
const account = 'account';
const outbox = accountKeys.outbox(account);
const hour = 3_600_000;
const most = Number.MAX_SAFE_INTEGER;

let jobs: JobFixture;
let db: Database;
let dataDir: string;
let ledger: InstanceType<typeof JobLedger>;
const consumers: Consumer[] = [];

before(async () => {
  jobs = await JobFixture.start();
});
after(() => jobs?.stop());

beforeEach(async () => {
  await jobs.redis.flushall();
  dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-refused-'));
  db = await openDatabase(await databaseSettings(dataDir));
  const view = {
    stream: () => () => [],
    held: () => '',
    final: () => {
      throw new TypeError('a view that fails on this answer');
    },
  };
  const options = { db, redis: jobs.redis, blobs: await Blobs.open(dataDir), retentionMs: 24 * hour, blobMs: hour };
  ledger = new JobLedger({ ...options, viewOf: () => view, metrics: createApiMetrics(new Registry()), log });
});
afterEach(async () => {
  await Promise.all(consumers.splice(0).map((consumer) => consumer.close(30_000)));
  await db.destroy();
  await rm(dataDir, { recursive: true, force: true });
});

function recordOf(job: JobIdentity, more: Partial<JobRecord> = {}): JobRecord {
  return {
    ...job,
    ...{ beganAt: job.createdAt, endedAt: job.createdAt, vendor: 'sandbox', outcome: 'completed' },
    ...{ errorCode: undefined, attempts: 1, usage: undefined, cost: 5 },
    ...more,
  };
}

/** Puts a record into the outbox as settlement does. */
async function sendRecord(more: Partial<JobRecord> = {}, cost = 5): Promise<string> {
  const record = recordOf(jobs.identity(), more);
  await jobs.redis.xadd(outbox, '*', 'r', recordText(record), 'c', cost);
  return record.id;
}

function consume(redis: RedisClient = jobs.redis, more: Partial<OutboxGroupOptions> = {}) {
  const setAside: number[] = [];
  const consumer = new OutboxConsumer({
    group: new OutboxGroup({ redis, isCluster: false, name: `consumer${consumers.length}`, ...more }),
    ...{ isCluster: false, store: ledger, log, takeOverRoundMs: 50, quarantine: new Quarantine(jobs.redis) },
    ...{ unreadable: new UnreadableEntries(log), onSetAside: (records) => setAside.push(records) },
  });
  consumers.push(consumer);
  return { consumer, setAside };
}

const rows = () => db.selectFrom('jobs').select(['id', 'cost']).orderBy('id').execute();
const isDrained = async (): Promise<void> => assert.equal(await jobs.redis.xlen(outbox), 0, 'the outbox is not empty');

describe('sums of costs', () => {
  test('sums of costs in rows, reports and balances are capped at the largest safe integer', async () => {
    await ensureAccount(db, { id: account, name: 'Account' });
    const usage = JSON.stringify({ prompt_tokens: most, completion_tokens: most });
    // By hours, so that the sums of the rows overflow, too.
    const createdAt = Date.now() - (Date.now() % hour);
    for (let batch = 0; batch < 11; batch++) {
      const made = Array.from({ length: 100 }, (_, index) => jobs.identity({ model: `m${batch}-${index}`, createdAt }));
      await ledger.write(
        made.flatMap((job) => [
          recordOf(job, { usage, cost: most }),
          recordOf({ ...jobs.identity(job), id: jobs.identity().id }, { usage, cost: most }),
        ]),
      );
    }
    const { total } = await readUsage(db, {
      ...{ account, from: createdAt, to: createdAt + hour, groupBy: 'model', timeZoneMs: 0 },
    });
    // A count that no model can have is taken for a billion.
    assert.deepEqual([total.requests, total.cost, total.input_tokens], [2200, most, 2200 * 1_000_000_000]);
    assert.equal((await findAccount(db, account))?.charged, most);
    const { rows: days } = await sql<{ cost: number }>`select cost from usage_days`.execute(db);
    assert.deepEqual(days, [{ cost: most }]);
    await ledger.write([recordOf(jobs.identity({ createdAt }))]);
    assert.equal((await rows()).length, 2201);
  });

  test('the charged sum of an account in Redis is capped at the largest safe integer, and settlement continues', async () => {
    const held = Array.from({ length: 1100 }, () => jobs.identity());
    const settlementOf = (job: JobIdentity) => ({
      ...{ ...job, jobId: job.id, outcome: 'completed' as const, errorCode: undefined, began: true, record: '' },
      ...{ cost: most, tokens: undefined },
    });
    for (const job of held) {
      await jobs.redis.zadd(accountKeys.holds(account), 1, `${job.id} ${account} key chat`);
      await settle(jobs.redis, [settlementOf(job)]);
    }
    assert.equal(await jobs.redis.hget(accountKeys.account(account), 'charged'), String(most));
    // As a version without that bound has left it.
    await jobs.redis.hset(accountKeys.account(account), 'charged', '9223372036854775000');
    const last = jobs.identity();
    await jobs.redis.zadd(accountKeys.holds(account), 1, `${last.id} ${account} key chat`);
    await settle(jobs.redis, [settlementOf(last)]);
    assert.equal(await jobs.redis.hget(accountKeys.account(account), 'charged'), String(most));
    assert.equal(await jobs.redis.zcard(accountKeys.holds(account)), 0);
  });
});

describe('settlement', () => {
  test('settlement settles nine thousand jobs of one account in one call', async () => {
    const held = Array.from({ length: 9000 }, () => jobs.identity());
    const member = (job: JobIdentity) => `${job.id} ${account} key chat`;
    await jobs.redis.zadd(accountKeys.holds(account), ...held.flatMap((job) => [1, member(job)]));
    await jobs.redis.hset(accountKeys.reserved(account), ...held.flatMap((job) => [job.id, '10 0 0 - ']));
    await jobs.redis.hset(accountKeys.account(account), 'credit', 1e6, 'held', 90_000, 'n:chat', 9000);
    const settlements = held.map((job) => ({
      ...{ ...job, jobId: job.id, outcome: 'completed' as const, errorCode: undefined, began: true },
      ...{ record: recordText(recordOf(job)), cost: 5, tokens: undefined },
    }));
    await settle(jobs.redis, settlements);
    const stands = await jobs.redis.hmget(accountKeys.account(account), 'charged', 'held', 'n:chat');
    assert.deepEqual(stands, ['45000', '0', '0']);
    assert.deepEqual(
      [await jobs.redis.zcard(accountKeys.holds(account)), await jobs.redis.hlen(accountKeys.reserved(account))],
      [0, 0],
    );
    assert.equal(await jobs.redis.xlen(outbox), 9000);
  });
});

describe('records that the database rejects', () => {
  test('a rejected record is quarantined alone, those before and behind it are written, and the charge in Redis stands', async () => {
    await jobs.redis.hset(accountKeys.account(account), 'charged', 25);
    const good = [await sendRecord(), await sendRecord()];
    // No column takes a part of a millisecond.
    const bad = await sendRecord({ retentionMs: 0.5, usage: '{"note":"a secret prompt"}' });
    good.push(await sendRecord(), await sendRecord());
    const { setAside } = consume();
    await eventually(isDrained);
    assert.deepEqual(
      (await rows()).map(({ id }) => id),
      good.sort(),
    );
    const kept = await jobs.redis.lrange(quarantineKey, 0, -1);
    assert.equal(kept.length, 1);
    assert.equal(JSON.parse(JSON.parse(kept[0] as string).record).id, bad);
    assert.deepEqual(setAside, [1]);
    assert.equal(await jobs.redis.hget(accountKeys.account(account), 'charged'), '25');
  });

  test('no record is quarantined while the database rejects everything: all wait and are written later', async () => {
    const ids = [await sendRecord(), await sendRecord({ retentionMs: 0.5 }), await sendRecord()];
    await sql`alter table usage_hours rename to usage_hours_away`.execute(db);
    const { setAside } = consume();
    await delay(1000);
    assert.deepEqual([await jobs.redis.xlen(outbox), setAside.length], [3, 0]);
    await sql`alter table usage_hours_away rename to usage_hours`.execute(db);
    await eventually(isDrained, 20_000);
    assert.deepEqual(
      (await rows()).map(({ id }) => id),
      [ids[0], ids[2]].sort(),
    );
    assert.deepEqual(setAside, [1]);
  });

  test('a job whose answer its view cannot show is written without the answer', async () => {
    const job = await jobs.create({ retentionMs: hour });
    await jobs.take(job);
    await jobs.write(job, 1, 1, ['a', 'b']);
    await jobs.end(job, { attempt: 1 });
    await jobs.redis.xadd(outbox, '*', 'r', recordText(recordOf(job)));
    const plain = await sendRecord();
    const { setAside } = consume();
    await eventually(isDrained);
    assert.deepEqual(
      (await rows()).map(({ id }) => id),
      [job.id, plain].sort(),
    );
    assert.deepEqual(setAside, []);
  });
});

describe('answers that cannot be read temporarily', () => {
  test('an answer that cannot be read temporarily delays its own record and no other', async () => {
    const job = await jobs.create({ retentionMs: hour });
    await jobs.take(job);
    await jobs.end(job, { attempt: 1 });
    await jobs.redis.xadd(outbox, '*', 'r', recordText(recordOf(job)));
    const plain = await sendRecord();
    let isBroken = true;
    const read = ledger.read.bind(ledger);
    ledger.read = async (record) => (isBroken && record.id === job.id ? undefined : await read(record));
    consume(jobs.redis, { takeOverMs: 50 });
    await eventually(async () =>
      assert.deepEqual(
        (await rows()).map(({ id }) => id),
        [plain],
      ),
    );
    assert.equal(await jobs.redis.xlen(outbox), 1);
    isBroken = false;
    await eventually(isDrained);
    assert.equal((await rows()).length, 2);
  });
});

describe('taking over outbox entries of other processes', () => {
  type Command = (...args: unknown[]) => Promise<unknown>;

  /** The same connection, some of whose commands answer otherwise. */
  const changed = (commands: Record<string, Command>): RedisClient =>
    new Proxy(jobs.redis, {
      get: (target, name) => {
        const value = commands[String(name)] ?? Reflect.get(target, name);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });

  /** The same connection as Redis 6.2 has it: deleted entries stay pending, and are nil, until they are acknowledged. */
  function beforeRedis7(pending: Set<string>): RedisClient {
    const { xautoclaim, xpending, xack } = jobs.redis as unknown as Record<string, Command>;
    const ask = (command: Command | undefined, args: unknown[]) => command?.apply(jobs.redis, args);
    return changed({
      xautoclaim: async (...args) => {
        const [next, claimed, deleted] = (await ask(xautoclaim, args)) as [string, unknown[], string[]];
        for (const id of deleted) pending.add(id);
        return [next, args[0] === outbox ? [...[...pending].map(() => null), ...claimed] : claimed];
      },
      xpending: async (...args) => {
        const known = (await ask(xpending, args)) as unknown[];
        return args[0] === outbox ? [...[...pending].map((id) => [id, args[5], 100, 1]), ...known] : known;
      },
      xack: async (...args) => {
        for (const id of args.slice(2)) pending.delete(id as string);
        return await ask(xack, args);
      },
    });
  }

  test('the takeover of outbox entries skips a deleted entry, for which Redis before 7.0 returns nil', async () => {
    const dead = new OutboxGroup({ redis: jobs.redis, isCluster: false, name: 'dead' });
    await dead.read();
    await sendRecord();
    const left = await sendRecord();
    const { entries } = await dead.read();
    await jobs.redis.xdel(outbox, entries[0]?.id as string);
    const pending = new Set<string>();
    consume(beforeRedis7(pending), { takeOverMs: 50 });
    await eventually(isDrained);
    await eventually(() => assert.deepEqual([...pending], [], 'what is deleted is acknowledged'));
    assert.deepEqual(
      (await rows()).map(({ id }) => id),
      [left],
    );
  });

  test('entries are taken over also when the clock of the host was put back by an hour', async (t) => {
    const dead = new OutboxGroup({ redis: jobs.redis, isCluster: false, name: 'dead' });
    await dead.read();
    consume(jobs.redis, { takeOverMs: 50 });
    await sendRecord();
    await eventually(isDrained);
    const now = Date.now;
    t.mock.method(Date, 'now', () => now() - hour);
    // Its own reader may have been faster.
    for (let entries: readonly unknown[] = []; entries.length === 0; ) {
      await sendRecord();
      ({ entries } = await dead.read());
    }
    await eventually(isDrained);
  });

  test('new records are written even when the takeover of outbox entries fails', async () => {
    consume(changed({ xautoclaim: () => Promise.reject(new Error('it cannot be claimed')) }));
    const sent = [await sendRecord(), await sendRecord()];
    await eventually(async () =>
      assert.deepEqual(
        (await rows()).map(({ id }) => id),
        sent.sort(),
      ),
    );
  });
});

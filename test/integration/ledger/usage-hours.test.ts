import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { type Selectable, sql } from 'kysely';
import { Registry } from 'prom-client';
import type { OutboxConsumer as Consumer } from '../../../api/ledger/outbox/outbox-consumer.ts';
import type { UsageQuestion } from '../../../api/ledger/usage/usage-report.ts';
import type { Database } from '../../../shared/database/database.ts';
import type { JobsTable } from '../../../shared/database/tables.ts';
import type { JobIdentity } from '../../../shared/jobs/job-state.ts';
import type { JobRecord } from '../../../shared/jobs/settlement/outbox.ts';
import { groupBy as groupRows } from '../../../shared/runtime/group-by.ts';
import { databaseSettings, isOnPostgres } from '../../support/database-settings.ts';
import { eventually } from '../../support/eventually.ts';
import { JobFixture } from '../../support/faults/job-fixture.ts';
import { loadProduct } from '../../support/gateway.ts';

const { accountKeys } = await loadProduct<typeof import('../../../shared/redis/keys.ts')>('shared/redis/keys');
const { openDatabase } =
  await loadProduct<typeof import('../../../shared/database/database.ts')>('shared/database/database');
const { readMigrations } =
  await loadProduct<typeof import('../../../shared/database/migrations.ts')>('shared/database/migrations');
const { createLogger } = await loadProduct<typeof import('../../../shared/runtime/log.ts')>('shared/runtime/log');
const { createApiMetrics } =
  await loadProduct<typeof import('../../../shared/runtime/metrics.ts')>('shared/runtime/metrics');
const { recordText } = await loadProduct<typeof import('../../../shared/jobs/settlement/outbox.ts')>(
  'shared/jobs/settlement/outbox',
);
const { Blobs } = await loadProduct<typeof import('../../../shared/blobs/blobs.ts')>('shared/blobs/blobs');
const { newJobId } = await loadProduct<typeof import('../../../shared/ids.ts')>('shared/ids');
const { AcceptedJobs } =
  await loadProduct<typeof import('../../../api/ledger/accepted-jobs.ts')>('api/ledger/accepted-jobs');
const { JobLedger } = await loadProduct<typeof import('../../../api/ledger/job-ledger.ts')>('api/ledger/job-ledger');
const { LostJobs } = await loadProduct<typeof import('../../../api/ledger/lost-jobs.ts')>('api/ledger/lost-jobs');
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
const { readUsage } = await loadProduct<typeof import('../../../api/ledger/usage/usage-report.ts')>(
  'api/ledger/usage/usage-report',
);

const { log } = createLogger('silent', 'test');
const hour = 3_600_000;
const day = 24 * hour;
const outbox = accountKeys.outbox('account');
/** The beginning of a day some days ago, in UTC. */
const morning = Date.now() - (Date.now() % day) - 3 * day;

let jobs: JobFixture;
let db: Database;
let dataDir: string;
let ledger: InstanceType<typeof JobLedger>;
const consumers: Consumer[] = [];
const databases: Database[] = [];

before(async () => {
  jobs = await JobFixture.start();
});
after(() => jobs?.stop());

beforeEach(async () => {
  await jobs.redis.flushall();
  dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-usage-'));
  ({ db, ledger } = await openLedger());
});
afterEach(async () => {
  await Promise.all(consumers.splice(0).map((consumer) => consumer.close(2000)));
  await Promise.all(databases.splice(0).map((opened) => opened.destroy()));
  await rm(dataDir, { recursive: true, force: true });
});

/** A ledger as another process has it, with a connection of its own. */
async function openLedger() {
  const opened = await openDatabase(await databaseSettings(dataDir));
  databases.push(opened);
  const blobs = await Blobs.open(dataDir);
  const viewOf = () => ({ stream: () => () => [], held: () => '' });
  const metrics = createApiMetrics(new Registry());
  const options = { db: opened, redis: jobs.redis, blobs, viewOf, retentionMs: 30 * day, blobMs: day, metrics, log };
  return { db: opened, ledger: new JobLedger(options) };
}

function record(more: Partial<JobRecord> = {}): JobRecord {
  const createdAt = more.createdAt ?? morning;
  return {
    ...jobs.identity({ id: newJobId(createdAt), createdAt }),
    ...{ vendor: 'sandbox', outcome: 'completed', errorCode: undefined, attempts: 1, cost: 5 },
    ...{ beganAt: createdAt + 1, firstAt: createdAt + 20, endedAt: createdAt + 100 },
    usage: '{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}',
    ...more,
  };
}

const range = { from: morning - day, to: morning + 3 * day };

async function report(more: Partial<UsageQuestion> = {}) {
  return await readUsage(db, { account: undefined, ...range, groupBy: 'day', timeZoneMs: 0, ...more });
}

/** What the jobs themselves say, added up one by one. */
async function addedUp() {
  return sumsOf(await db.selectFrom('jobs').selectAll().where('outcome', 'is not', null).execute());
}

function sumsOf(rows: readonly Selectable<JobsTable>[]) {
  const sum = (value: (row: (typeof rows)[number]) => number | null) =>
    rows.reduce((total, row) => total + (value(row) ?? 0), 0);
  return {
    requests: rows.length,
    failed: sum(({ outcome }) => (outcome === 'failed' ? 1 : 0)),
    cancelled: sum(({ outcome }) => (outcome === 'cancelled' ? 1 : 0)),
    input_tokens: sum((row) => row.input_tokens),
    output_tokens: sum((row) => row.output_tokens),
    cost: sum((row) => row.cost),
    cached_tokens: sum((row) => row.cached_tokens),
    saved: sum((row) => row.saved),
    cache_hits: 0,
    milliseconds: sum((row) => (row.ended_at ?? 0) - row.created_at),
    first_milliseconds: sum((row) => row.first_at && row.first_at - row.created_at),
    first_count: sum((row) => (row.first_at === null ? 0 : 1)),
  };
}

/** A usage, half of whose prompt was cached: as OpenAI or as DeepSeek says it. */
function usageOf(tokens: number): string {
  const cached = Math.floor(tokens / 2);
  const said =
    tokens % 2 === 0 ? `"prompt_tokens_details":{"cached_tokens":${cached}}` : `"prompt_cache_hit_tokens":${cached}`;
  return `{"prompt_tokens":${tokens},"completion_tokens":2,${said}}`;
}

/** Records of all kinds, over a few hours and groups. */
function manyRecords(count: number): JobRecord[] {
  return Array.from({ length: count }, (_, index) =>
    record({
      createdAt: morning + (index % 5) * hour + index,
      model: `model-${index % 3}`,
      apiKeyId: `key-${index % 2}`,
      outcome: (['completed', 'failed', 'cancelled'] as const)[index % 3] ?? 'completed',
      cost: index % 4 === 0 ? undefined : index * 1001,
      firstAt: index % 2 === 0 ? undefined : morning + (index % 5) * hour + index + 30,
      usage: index % 6 === 0 ? undefined : usageOf(index),
      saved: index % 5 === 0 ? undefined : index * 11,
    }),
  );
}

const shuffled = <Item>(items: readonly Item[]): Item[] =>
  items
    .map((item, index) => ({ item, order: (index * 7919) % 1009 }))
    .sort((one, other) => one.order - other.order)
    .map(({ item }) => item);

/** The columns that a table of sums had when its first migration filled it. */
function columnsThen(insert: string): string {
  const groups = insert.endsWith('days')
    ? 'day_start, account_id, api_key_id'
    : 'account_id, hour_start, api_key_id, model, endpoint, capability, vendor';
  const sums = 'requests, failed, cancelled, input_tokens, output_tokens, cost, milliseconds';
  return `${groups}, ${sums}, first_milliseconds, first_count`;
}

describe('hourly sums', () => {
  test('hourly sums equal those of the jobs, in whatever order and however often the records arrive', async () => {
    const records = manyRecords(300);
    await ledger.write(records.slice(100));
    await ledger.write(shuffled(records));
    await ledger.write([...records.slice(50, 200), ...records.slice(0, 100)]);
    const { rows, total } = await report();
    assert.deepEqual(total, await addedUp());
    assert.equal(total.requests, 300);
    assert.ok(total.cached_tokens > 1000 && total.saved > 1000);
    assert.deepEqual(
      rows.map(({ group, requests }) => [group, requests]),
      [[morning, 300]],
    );
  });

  test('hourly sums are right when several processes write the same records at once, without a deadlock', async () => {
    const others = await Promise.all([openLedger(), openLedger(), openLedger()]);
    const ledgers = [ledger, ...others.map(({ ledger: other }) => other)];
    for (let round = 0; round < 6; round++) {
      const records = manyRecords(500);
      await Promise.all(ledgers.map((one, index) => one.write(index % 2 === 0 ? records : [...records].reverse())));
    }
    assert.deepEqual((await report()).total, await addedUp());
    assert.equal((await addedUp()).requests, 3000);
  });

  test('hourly sums are right when several processes write different jobs of the same hours in different orders', async () => {
    const others = await Promise.all([openLedger(), openLedger(), openLedger()]);
    const ledgers = [ledger, ...others.map(({ ledger: other }) => other)];
    for (let round = 0; round < 6; round++) {
      const writes = ledgers.map((one, index) => {
        const modelOf = (number: number) => `model-${index % 2 === 0 ? number : 299 - number}`;
        const own = Array.from({ length: 300 }, (_, number) =>
          record({ createdAt: morning + number, model: modelOf(number) }),
        );
        return one.write(own);
      });
      await Promise.all(writes);
    }
    assert.deepEqual((await report()).total, await addedUp());
    assert.equal((await addedUp()).requests, 7200);
  });

  test('hourly sums count records of two outbox consumers once, although another one died after its write', async () => {
    const group = (name: string, takeOverMs?: number) =>
      new OutboxGroup({ redis: jobs.redis, isCluster: false, name, ...(takeOverMs !== undefined && { takeOverMs }) });
    const dead = group('dead');
    await dead.read();
    const records = manyRecords(150);
    for (const { cost, ...rest } of records) {
      const charge = cost === undefined ? [] : ['c', String(cost)];
      await jobs.redis.xadd(outbox, '*', 'r', recordText(rest), ...charge);
    }
    const { entries } = await dead.read();
    assert.ok(entries.length > 100);
    // It commits, and then it is gone: its entries are taken over.
    await ledger.write(records.slice(0, entries.length));
    const other = await openLedger();
    for (const [name, to] of [
      ['one', ledger],
      ['two', other.ledger],
    ] as const) {
      consumers.push(
        new OutboxConsumer({
          ...{ group: group(name, 50), isCluster: false, store: to, log, takeOverRoundMs: 50 },
          ...{ quarantine: new Quarantine(jobs.redis), unreadable: new UnreadableEntries(log) },
        }),
      );
    }
    await eventually(async () => assert.equal(await jobs.redis.xlen(outbox), 0));
    assert.deepEqual((await report()).total, await addedUp());
    const written = await addedUp();
    assert.equal(written.requests, 150);
    assert.equal(
      written.cost,
      records.reduce((sum, { cost }) => sum + (cost ?? 0), 0),
    );
  });

  test('hourly sums count a job accepted before it ran once, when it ends', async () => {
    const job = jobs.identity({ retentionMs: day, createdAt: morning, metadata: '{"customer":"a"}' });
    await new AcceptedJobs(db, day, log).add(job, '{}');
    assert.equal((await report()).total.requests, 0);
    await ledger.write([record({ ...job, outcome: 'cancelled' })]);
    await ledger.write([record({ ...job, cost: 900 })]);
    const { total } = await report();
    assert.deepEqual([total.requests, total.cancelled, total.cost], [1, 1, 5]);
    const row = await db.selectFrom('jobs').selectAll().executeTakeFirstOrThrow();
    assert.deepEqual([row.metadata, row.cost, row.first_at], ['{"customer":"a"}', 5, morning + 20]);
  });

  test('hourly sums count a lost job once, also when its record arrives later', async () => {
    const job: JobIdentity = jobs.identity({ retentionMs: day, createdAt: morning });
    await new AcceptedJobs(db, day, log).add(job, '{}');
    const queue = () => ({ has: async () => false, remove: async () => false });
    const options = { db, redis: jobs.redis, queue, log, minAgeMs: 0 };
    const lost = new LostJobs(options as unknown as ConstructorParameters<typeof LostJobs>[0]);
    lost.close();
    for (let round = 0; round < 3; round++) await lost.sweep();
    await ledger.write([record({ ...job })]);
    const { total } = await report();
    assert.deepEqual([total.requests, total.failed, total.cost], [1, 1, 0]);
    assert.deepEqual(total, await addedUp());
  });

  test('hourly sums merge models whose names differ only in characters that databases reject', async () => {
    await ledger.write(['model-\0', 'model-\ud800', 'model-x'].map((model) => record({ model })));
    const { rows, total } = await report({ groupBy: 'model' });
    assert.equal(total.requests, 3);
    assert.deepEqual(
      rows.map(({ group, requests }) => [group, requests]),
      [
        ['model-\ufffd', 2],
        ['model-x', 1],
      ],
    );
  });

  test('the migrations fill the hourly and daily sums as the ledger does', async () => {
    const unknown = { cost: undefined, firstAt: undefined, saved: undefined };
    const usage = '{"prompt_tokens":3,"completion_tokens":4}';
    await ledger.write(manyRecords(120).map((one) => ({ ...one, ...unknown, usage: one.usage && usage })));
    const all = async () => [
      await db
        .selectFrom('usage_hours')
        .selectAll()
        .orderBy('hour_start')
        .orderBy('model')
        .orderBy('api_key_id')
        .execute(),
      await db.selectFrom('usage_days').selectAll().orderBy('day_start').orderBy('api_key_id').execute(),
    ];
    const before = await all();
    await db.deleteFrom('usage_hours').execute();
    await db.deleteFrom('usage_days').execute();
    for (const name of ['006-money', '009-usage-days']) {
      const migration =
        readMigrations(isOnPostgres ? 'postgres' : 'sqlite').find((one) => one.name === name)?.sql ?? '';
      const statements = migration.slice(migration.indexOf('INSERT INTO usage_')).split(';\n');
      for (const statement of statements.filter((text) => text.trim() !== '')) {
        // Later migrations have added columns.
        const named = statement.replace(
          /INSERT INTO usage_(hours|days)/,
          (start) => `${start} (${columnsThen(start)})`,
        );
        await sql.raw(named).execute(db);
      }
    }
    assert.deepEqual(await all(), before);
    assert.deepEqual(
      before.map((rows) => rows.length > 1),
      [true, true],
    );
  });
});

describe('usage reports by account or key', () => {
  const accounts = ['one', 'two', 'three'];

  /** A job of each kind in every third hour of four days, and at both ends of hours and days. */
  async function writeJobs(): Promise<Selectable<JobsTable>[]> {
    const hours = Array.from({ length: 4 * 24 }, (_, index) => morning - day + index * hour);
    const times = hours.flatMap((start, index) => (index % 3 === 0 ? [start, start + hour - 1] : [start + index]));
    const records = times.map((createdAt, index) => {
      const account = accounts[index % 3] as string;
      return record({
        ...{ createdAt, account, apiKeyId: `${account}-key-${index % 2}`, model: `model-${index % 5}` },
        outcome: (['completed', 'failed', 'cancelled', 'completed'] as const)[index % 4] ?? 'completed',
        cost: index % 4 === 0 ? undefined : index * 1001,
        firstAt: index % 2 === 0 ? undefined : createdAt + 30,
        usage: `{"prompt_tokens":${index},"completion_tokens":2}`,
      });
    });
    // Two at a time: most rows of days are added to.
    for (let from = 0; from < records.length; from += 2) await ledger.write(records.slice(from, from + 2));
    return await db.selectFrom('jobs').selectAll().execute();
  }

  const noon = morning + 12 * hour;
  const spans: Readonly<Record<string, readonly [from: number, to: number]>> = {
    'whole days': [morning, morning + 2 * day],
    'hours at both ends': [morning - 5 * hour, morning + day + 7 * hour],
    'hours before days': [noon, morning + 2 * day],
    'hours behind days': [morning, noon + day],
    'hours around midnight': [noon, noon + day],
    'hours of one day': [morning + 3 * hour, noon],
    'one hour': [noon, noon + hour],
    'the last hour of a day': [morning + 23 * hour, morning + day],
    all: [morning - 9 * day, morning + 9 * day],
    nothing: [morning + 20 * day, morning + 22 * day],
  };

  test('a usage report by account, key, model or day equals the sums of the jobs for any span', async () => {
    const written = await writeJobs();
    const columns = { account: 'account_id', key: 'api_key_id', model: 'model', day: undefined } as const;
    for (const [name, [from, to]] of Object.entries(spans)) {
      const inSpan = written.filter(({ created_at: at }) => at >= from && at < to);
      for (const [groupBy, key, model] of [
        ['account', undefined, undefined],
        ['key', undefined, undefined],
        ['account', 'two-key-1', undefined],
        ['key', 'two-key-1', undefined],
        ['key', 'no-key', undefined],
        ['model', 'two-key-1', undefined],
        ['model', 'no-key', undefined],
        ['day', 'two-key-1', undefined],
        ['account', undefined, 'model-3'],
        ['key', undefined, 'model-3'],
        ['key', 'two-key-1', 'model-3'],
      ] as const) {
        const asked = inSpan
          .filter(({ api_key_id: used }) => key === undefined || used === key)
          .filter(({ model: used }) => model === undefined || used === model);
        const column = columns[groupBy];
        const groupOf = (row: Selectable<JobsTable>) =>
          column === undefined ? row.created_at - (row.created_at % day) : row[column];
        const expected = [...groupRows(asked, groupOf)].map(([group, rows]) => ({ group, ...sumsOf(rows) }));
        const order = (one: { group: unknown }, other: { group: unknown }) =>
          String(one.group) < String(other.group) ? -1 : 1;
        const { rows, total } = await report({ from, to, groupBy, key, model });
        const question = `${name} by ${groupBy}, key ${key}, model ${model}`;
        assert.deepEqual([...rows].sort(order), expected.sort(order), question);
        assert.deepEqual(total, sumsOf(asked), question);
      }
    }
  });

  test('a usage report by key lists the thousand most expensive keys and sums up all', async () => {
    const records = Array.from({ length: 1005 }, (_, index) => record({ apiKeyId: `key-${index}`, cost: index }));
    await ledger.write(records);
    for (const span of [{}, { from: morning, to: morning + hour }]) {
      const { rows, total } = await report({ ...span, groupBy: 'key' });
      assert.deepEqual([rows.length, rows[0]?.group, rows.at(-1)?.group], [1000, 'key-1004', 'key-5']);
      assert.deepEqual([total.requests, total.cost], [1005, (1004 * 1005) / 2]);
    }
  });
});

describe('usage reports', () => {
  test('a usage report groups jobs by the days of the requested time zone', async () => {
    await ledger.write([
      record({ createdAt: morning - 1 }),
      record({ createdAt: morning }),
      record({ createdAt: morning + 5 * hour - 1 }),
      record({ createdAt: morning + 5 * hour }),
      record({ createdAt: morning + 23 * hour }),
    ]);
    const days = async (offset: number) =>
      (await report({ timeZoneMs: offset * hour })).rows.map(({ group, requests }) => [Number(group), requests]);
    assert.deepEqual(await days(0), [
      [morning - day, 1],
      [morning, 4],
    ]);
    assert.deepEqual(await days(-5), [
      [morning + 5 * hour - day, 3],
      [morning + 5 * hour, 2],
    ]);
    assert.deepEqual(await days(1), [
      [morning - hour, 4],
      [morning + 23 * hour, 1],
    ]);
    const hours = (await report({ groupBy: 'hour' })).rows.map(({ group }) => group);
    assert.deepEqual(hours, [morning - hour, morning, morning + 4 * hour, morning + 5 * hour, morning + 23 * hour]);
    const { total } = await report({ from: morning, to: morning + 5 * hour });
    assert.equal(total.requests, 2, 'the end of the span is not in it');
  });

  test('a usage report filters by account, model, key and endpoint', async () => {
    await ledger.write([
      ...manyRecords(60),
      record({ account: 'other', model: 'theirs', cost: 7 }),
      record({ account: 'other', model: 'theirs', cost: 8, apiKeyId: 'their-key' }),
    ]);
    const all = await report({ groupBy: 'account' });
    assert.deepEqual(
      all.rows.map(({ group, requests }) => [group, requests]),
      [
        ['account', 60],
        ['other', 2],
      ],
    );
    assert.equal(all.total.requests, 62);
    const theirs = await report({ account: 'other', groupBy: 'key' });
    assert.deepEqual(
      theirs.rows.map(({ group, cost }) => [group, cost]),
      [
        ['their-key', 8],
        ['key', 7],
      ],
    );
    assert.equal((await report({ account: 'account', model: 'theirs' })).total.requests, 0);
    assert.equal((await report({ account: 'account', model: 'model-1', key: 'key-1' })).total.requests, 10);
    assert.equal((await report({ endpoint: 'responses' })).rows.length, 0);
  });

  test('a usage report by tag counts only jobs with exactly that tag', async () => {
    const tagged = (metadata: Record<string, string>) => record({ metadata: JSON.stringify(metadata) });
    await ledger.write([
      tagged({ customer: 'a', job: 'b' }),
      tagged({ job: 'b', customer: 'a' }),
      tagged({ customer: 'ab' }),
      tagged({ xcustomer: 'a' }),
      tagged({ 'x"customer': 'a' }),
      tagged({ note: '"customer":"a"' }),
      tagged({ note: ',"customer":"a"', other: '{"customer":"a"' }),
      tagged({ customer: 'A' }),
      tagged({ customer: '"\\%' }),
      record(),
      { ...tagged({ customer: 'a' }), account: 'other' },
    ]);
    const count = async (value: string) =>
      (await report({ account: 'account', tag: { name: 'customer', value } })).total.requests;
    assert.equal(await count('a'), 2);
    assert.equal(await count('"\\%'), 1);
    assert.equal(await count('none'), 0);
    const { total } = await report({ tag: { name: 'customer', value: 'a' } });
    assert.deepEqual([total.requests, total.cost, total.milliseconds, total.first_milliseconds], [3, 15, 300, 60]);
  });

  test('a usage report by model lists a thousand models and sums up all', async () => {
    await ledger.write(Array.from({ length: 1005 }, (_, index) => record({ model: `model-${index}`, cost: index })));
    const { rows, total } = await report({ groupBy: 'model' });
    assert.equal(rows.length, 1000);
    assert.equal(rows[0]?.group, 'model-1004');
    assert.equal(total.requests, 1005);
    assert.equal(total.cost, (1004 * 1005) / 2);
  });
});

import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { Redis } from 'ioredis';
import pg from 'pg';
import { openJobRow } from '../../../api/ledger/job-rows.ts';
import { dropPartition, readPartitions } from '../../../api/ledger/retention/job-partitions.ts';
import { type JobRetentionOptions, retainJobs } from '../../../api/ledger/retention/job-retention.ts';
import { Blobs } from '../../../shared/blobs/blobs.ts';
import { type Database, openDatabase } from '../../../shared/database/database.ts';
import { migratePostgres } from '../../../shared/database/migrate-postgres.ts';
import { readMigrations } from '../../../shared/database/migrations.ts';
import { newJobId } from '../../../shared/ids.ts';
import type { JobIdentity } from '../../../shared/jobs/job-state.ts';
import { jobRetentionKey } from '../../../shared/redis/keys.ts';
import { createLogger } from '../../../shared/runtime/log.ts';
import { eventually } from '../../support/eventually.ts';
import { JobRecords } from '../../support/job-records.ts';
import { startPostgres, type TestPostgres } from '../../support/postgres.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { skewedClock } from '../../support/skewed-clock.ts';

const dayMs = 86_400_000;
const noonOf = (time: number): number => time - (time % dayMs) + dayMs / 2;
/** Noon of today, in UTC. */
const now = noonOf(Date.now());
const { log } = createLogger('silent', 'test');
/** Rows of a large table: under `npm run soak`, a day of a busy gateway. */
const rows = process.env.SLUICE_SOAK ? 1_000_000 : 20_000;
const timeout = 600_000;

let folder = '';
let server: TestPostgres;
let redisServer: TestRedis;
let redis: Redis;
let made = 0;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-test-retention-'));
  [server, redisServer] = await Promise.all([startPostgres(), startRedis()]);
  redis = new Redis(redisServer.url);
});
beforeEach(async () => void (await redis.flushall()));
after(async () => {
  redis?.disconnect();
  await Promise.all([server?.stop(), redisServer?.stop()]);
  await rm(folder, { recursive: true, force: true });
});

/** The row of a job made `days` days before noon of today. */
function rowOf(days: number, fields: { outcome?: 'completed' | null; metadata?: string } = {}) {
  const createdAt = now - days * dayMs;
  const identity = {
    account: 'default',
    apiKeyId: 'key',
    endpoint: 'chat',
    capability: 'chat',
    model: 'm',
    stream: false,
  };
  const job = { ...identity, id: newJobId(createdAt), createdAt, retentionMs: 0 } as unknown as JobIdentity;
  return { ...openJobRow(job), outcome: 'completed' as const, ended_at: createdAt + 10, cost: 5, ...fields };
}

interface Place extends Pick<JobRetentionOptions, 'db' | 'blobs'> {
  readonly dataDir: string;
  readonly databaseUrl: string | undefined;
}

async function openPlace(kind: string, databaseUrl?: string): Promise<Place> {
  const dataDir = join(folder, `data-${++made}`);
  const url = kind === 'SQLite' ? undefined : (databaseUrl ?? (await server.createDatabase()));
  return {
    db: await openDatabase({ dataDir, databaseUrl: url }),
    blobs: await Blobs.open(dataDir),
    dataDir,
    databaseUrl: url,
  };
}

/** One round, as the ledger does it every ten minutes. */
async function retain(
  place: Pick<Place, 'db' | 'blobs'>,
  days: number | undefined,
  { jobExport = 'off', at = now }: { jobExport?: 'off' | 'csv' | 'jsonl'; at?: number } = {},
): Promise<void> {
  await redis.flushall();
  const jobRetentionMs = days === undefined ? undefined : days * dayMs;
  await retainJobs({ ...place, redis, log, config: { jobRetentionMs, jobExport } }, at);
}

async function insert(db: Database, ...rows: ReturnType<typeof rowOf>[]): Promise<void> {
  await db.insertInto('jobs').values(rows).execute();
}

async function idsOf(db: Database): Promise<string[]> {
  return (await db.selectFrom('jobs').select('id').orderBy('id').execute()).map(({ id }) => id);
}

/** The exported texts by file. */
async function exportsOf({ dataDir }: Pick<Place, 'dataDir'>): Promise<Map<string, string>> {
  const files = await readdir(join(dataDir, 'blobs', 'exports')).catch(() => []);
  const texts = files.sort().map(async (file): Promise<[string, string]> => {
    return [file, gunzipSync(await readFile(join(dataDir, 'blobs', 'exports', file))).toString()];
  });
  return new Map(await Promise.all(texts));
}

for (const kind of ['SQLite', 'Postgres']) {
  describe(`the retention of jobs on ${kind}`, () => {
    test(`on ${kind}, whole days older than the retention are exported and deleted; unfinished jobs and younger days stay`, async () => {
      const place = await openPlace(kind);
      const [old, older, open, edge, young] = [
        rowOf(40),
        rowOf(41),
        rowOf(40, { outcome: null }),
        // Its day is not over for 30 days yet at noon, half of it is.
        rowOf(30),
        rowOf(1),
      ];
      await insert(place.db, old, older, open, edge, young);
      await retain(place, 30, { jobExport: 'jsonl' });
      assert.deepEqual(await idsOf(place.db), [open.id, edge.id, young.id]);
      const texts = [...(await exportsOf(place)).values()].map((text) => text.trim().split('\n'));
      const ids = texts.flat().map((line) => JSON.parse(line).id as string);
      assert.deepEqual(ids.filter((id) => id !== open.id).sort(), [older.id, old.id]);
      const line = texts.flat().find((text) => text.includes(old.id)) as string;
      assert.deepEqual(JSON.parse(line), { ...old });
      // Once it has ended, it follows.
      await place.db.updateTable('jobs').set({ outcome: 'failed' }).where('id', '=', open.id).execute();
      await retain(place, 30);
      assert.deepEqual(await idsOf(place.db), [edge.id, young.id]);
      await place.db.destroy();
    });

    test(`on ${kind}, rows stay for good without a retention, and in the one round that another process has begun`, async () => {
      const place = await openPlace(kind);
      await insert(place.db, rowOf(4000));
      await retain(place, undefined);
      assert.equal((await idsOf(place.db)).length, 1);
      const options = { ...place, redis, log, config: { jobRetentionMs: dayMs, jobExport: 'off' as const } };
      await insert(place.db, rowOf(4000));
      await retainJobs(options, now);
      assert.equal((await idsOf(place.db)).length, 0);
      await insert(place.db, rowOf(4000));
      await retainJobs(options, now);
      assert.equal((await idsOf(place.db)).length, 1);
      await place.db.destroy();
    });

    test(`on ${kind}, rows whose export fails stay, and the next round exports them`, async () => {
      const place = await openPlace(kind);
      await insert(place.db, rowOf(40), rowOf(41));
      const full = { writeExport: () => Promise.reject(new Error('no space left')) };
      await assert.rejects(retain({ db: place.db, blobs: full }, 30, { jobExport: 'csv' }), /no space left/);
      assert.equal((await idsOf(place.db)).length, 2);
      await retain(place, 30, { jobExport: 'csv' });
      assert.equal((await idsOf(place.db)).length, 0);
      assert.equal((await exportsOf(place)).size, 2);
      await place.db.destroy();
    });

    test(`on ${kind}, a job that ends while its day is exported, or whose record comes then, is exported before its row goes`, async () => {
      const place = await openPlace(kind);
      const [old, open, late] = [rowOf(40), rowOf(40, { outcome: null }), rowOf(40)];
      await insert(place.db, old, open);
      const meanwhile = async (): Promise<void> => {
        await place.db.updateTable('jobs').set({ outcome: 'failed' }).where('id', '=', open.id).execute();
        await insert(place.db, late);
      };
      await retain(exportingSlowly(place, meanwhile), 30, { jobExport: 'jsonl' });
      assert.deepEqual(await unexported(place, [open, late]), []);
      await retain(place, 30, { jobExport: 'jsonl' });
      assert.deepEqual(await idsOf(place.db), []);
      assert.deepEqual(await unexported(place, [{ ...open, outcome: 'failed' }, old, late]), []);
      await place.db.destroy();
    });
  });
}

/** A place where something happens once, after an export has read all rows and before it is done. */
function exportingSlowly(place: Place, meanwhile: () => Promise<void>): Place {
  let hasHappened = false;
  return {
    ...place,
    blobs: {
      writeExport: async (name, content) => {
        await place.blobs.writeExport(name, content);
        if (!hasHappened) await meanwhile();
        hasHappened = true;
      },
    },
  };
}

/** Ids of jobs that are neither in the database nor, with this outcome, in an export. */
async function unexported(place: Place, jobs: readonly { id: string; outcome: string | null }[]): Promise<string[]> {
  const stored = await idsOf(place.db);
  const lines = [...(await exportsOf(place)).values()].flatMap((text) => text.trim().split('\n'));
  const exported = lines.map((line) => JSON.parse(line) as { id: string; outcome: string | null });
  const isKept = (job: { id: string; outcome: string | null }): boolean =>
    stored.includes(job.id) || exported.some(({ id, outcome }) => id === job.id && outcome === job.outcome);
  return jobs.filter((job) => !isKept(job)).map(({ id }) => id);
}

test('a round that takes long is left to the process that began it, however long that is', async () => {
  const place = await openPlace('SQLite');
  await insert(place.db, rowOf(40));
  let begun = 0;
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const writeExport: Place['blobs']['writeExport'] = async (name, content) => {
    begun++;
    await held;
    await place.blobs.writeExport(name, content);
  };
  const config = { jobRetentionMs: 30 * dayMs, jobExport: 'jsonl' as const };
  const round = (): Promise<void> =>
    retainJobs({ ...place, blobs: { writeExport }, redis, log, config, roundMs: 400 }, now);
  const first = round();
  await eventually(async () => assert.equal(begun, 1));
  // Several times as long as a mark of the round lasts by itself.
  const others: Promise<void>[] = [];
  for (let times = 0; times < 4; times++) {
    await new Promise((resolve) => setTimeout(resolve, 400));
    others.push(round());
  }
  release();
  await Promise.all(others);
  assert.equal(begun, 1);
  await first;
  assert.equal((await exportsOf(place)).size, 1);
  // Nothing keeps the mark any more.
  await eventually(async () => assert.equal(await redis.exists(jobRetentionKey), 0));
  await place.db.destroy();
});

test('an exported CSV has one cell a column whatever the caller wrote, and none that a spreadsheet would run', async () => {
  const place = await openPlace('SQLite');
  const hostile = { ...rowOf(40, { metadata: '{"a":"x, \\"y\\"\\n"}' }), model: ' =HYPERLINK("http://x")' };
  await insert(place.db, hostile);
  await retain(place, 30, { jobExport: 'csv' });
  const [text] = [...(await exportsOf(place)).values()];
  const [head, ...rest] = (text as string).split('\r\n');
  assert.ok(head?.startsWith('id,account_id,'));
  assert.match(rest.join('\r\n'), /,"' =HYPERLINK\(""http:\/\/x""\)",/);
  assert.ok(rest.join('\r\n').includes('"{""a"":""x, \\""y\\""\\n""}"'));
  await place.db.destroy();
});

describe('the retention of jobs in a gateway', () => {
  const settings = { SLUICE_JOBS_RETENTION_DAYS: '30', SLUICE_JOBS_EXPORT: 'jsonl' };

  for (const [what, clock] of [
    ['an api that starts', {}],
    ['an api whose clock is 60 days ahead', skewedClock(60 * dayMs)],
  ] as const) {
    test(`${what} deletes and exports the rows that are too old by everybody's clock, and no others`, async () => {
      const records = await JobRecords.start();
      const { gateway, db } = records;
      try {
        const young = rowOf(1);
        await insert(db, rowOf(40), young);
        const api = await gateway.startApi({ ...settings, ...clock });
        await eventually(async () => assert.deepEqual(await idsOf(db), [young.id]), 20_000);
        assert.equal(await api.stop(), 0);
        assert.deepEqual(await idsOf(db), [young.id]);
        assert.equal((await exportsOf(gateway)).size, 1);
      } finally {
        await records.stop();
      }
    });
  }
});

describe('partitions of jobs on Postgres', () => {
  async function partitionOf(db: Database, id: string): Promise<string> {
    const partitions = await readPartitions(db);
    return partitions.find(({ from = '', to }) => from <= id && id < to)?.name ?? 'jobs_rest';
  }

  /** A client of another program. */
  async function connect(connectionString: string): Promise<pg.Client> {
    const client = new pg.Client({ connectionString, query_timeout: 30_000 });
    client.on('error', () => undefined);
    await client.connect();
    return client;
  }

  test('partitions are made a week ahead, each after the one before, and take in rows that came before them', async () => {
    const place = await openPlace('Postgres');
    const rows = [rowOf(0), rowOf(-3), rowOf(-20)];
    await insert(place.db, ...rows);
    await retain(place, 30);
    const partitions = await readPartitions(place.db);
    assert.ok(partitions.length >= 8, String(partitions.length));
    for (const [index, { from }] of partitions.entries()) assert.equal(from, partitions[index - 1]?.to);
    const places = await Promise.all(rows.map(({ id }) => partitionOf(place.db, id)));
    assert.equal(new Set(places).size, 3);
    assert.equal(places[2], 'jobs_rest');
    const client = await connect(place.databaseUrl as string);
    const counted = await client.query('select tableoid::regclass::text as name, count(*)::int from jobs group by 1');
    assert.deepEqual(
      new Map(counted.rows.map(({ name, count }) => [name, count])),
      new Map(places.map((name) => [name, 1])),
    );
    await retain(place, 30);
    assert.deepEqual(await readPartitions(place.db), partitions);
    // A gateway that was stopped for months goes on.
    await retain(place, 30, { at: now + 90 * dayMs });
    const later = await readPartitions(place.db);
    assert.ok(later.length <= partitions.length + 10, String(later.length));
    assert.notEqual(await partitionOf(place.db, newJobId(now + 95 * dayMs)), 'jobs_rest');
    await client.end();
    await place.db.destroy();
  });

  test('rows that came before their partition are moved into it by many statements, each with a bounded number', async () => {
    const place = await openPlace('Postgres');
    const client = await connect(place.databaseUrl as string);
    const at = now + 60 * dayMs;
    await fill(client, at);
    await client.query(`create function refuse_many() returns trigger language plpgsql as $$ begin
      if (select count(*) from gone) > 10000 then raise exception 'too many rows at once'; end if; return null; end $$`);
    await client.query(`create trigger few after delete on jobs_rest referencing old table as gone
      for each statement execute function refuse_many()`);
    await retain(place, 30, { at });
    const counted = await client.query('select tableoid::regclass::text as name, count(*)::int from jobs group by 1');
    assert.deepEqual(
      counted.rows.map(({ count }) => count),
      [rows],
    );
    assert.notEqual(counted.rows[0].name, 'jobs_rest');
    await client.end();
    await place.db.destroy();
  });

  test('for a user who does not own the tables expired jobs are deleted by rows, and no partitions are made', async () => {
    const place = await openPlace('Postgres');
    const owner = await connect(place.databaseUrl as string);
    await owner.query('create role gateway login');
    await owner.query('grant select, insert, update, delete on all tables in schema public to gateway');
    const before = await readPartitions(place.db);
    const url = (place.databaseUrl as string).replace('sluice@', 'gateway@');
    const db = await openDatabase({ dataDir: place.dataDir, databaseUrl: url });
    const [old, young] = [rowOf(40), rowOf(1)];
    await insert(db, old, young, rowOf(-60));
    await retain({ ...place, db }, 30);
    assert.deepEqual((await idsOf(db)).slice(0, 1), [young.id]);
    await retain({ ...place, db }, 30, { at: now + 70 * dayMs });
    assert.equal((await idsOf(db)).length, 1);
    assert.deepEqual(await readPartitions(place.db), before);
    await db.destroy();
    await owner.query('drop owned by gateway');
    await owner.query('drop role gateway');
    await owner.end();
    await place.db.destroy();
  });

  test('without a retention, or with a long one, partitions are months', async () => {
    const place = await openPlace('Postgres');
    for (const days of [undefined, 400]) await retain(place, days);
    assert.ok((await readPartitions(place.db)).length <= 3);
    await place.db.destroy();
  });

  test('an expired partition is dropped, though others read the table all the time, and writes meanwhile go on', async () => {
    const place = await openPlace('Postgres');
    await retain(place, 5);
    const [day] = (await readPartitions(place.db)).filter(({ from }) => from !== undefined);
    await insert(place.db, rowOf(0));
    const [reader, writer] = await Promise.all([
      connect(place.databaseUrl as string),
      connect(place.databaseUrl as string),
    ]);
    await reader.query('begin');
    await reader.query('select count(*) from jobs');
    const retaining = retain(place, 5, { at: now + 7 * dayMs, jobExport: 'jsonl' });
    const waiting = "select 1 from pg_locks where not granted and relation = any('{jobs,jobs_rest}'::regclass[])";
    await eventually(async () => assert.equal((await writer.query(waiting)).rowCount, 1), 20_000);
    // It waits for the reader's lock, and this one for it: only its giving way lets it through.
    await insert(place.db, rowOf(-7));
    await reader.query('commit');
    await retaining;
    const names = (await readPartitions(place.db)).map(({ name }) => name);
    assert.ok(day !== undefined && !names.includes(day.name));
    assert.equal((await idsOf(place.db)).length, 1);
    assert.equal((await exportsOf(place)).size, 1);
    assert.equal((await writer.query('select 1 from pg_class where relname = $1', [day.name])).rowCount, 0);
    await Promise.all([reader.end(), writer.end()]);
    await place.db.destroy();
  });

  test('a partition with an unfinished job stays until that has ended', async () => {
    const place = await openPlace('Postgres');
    await retain(place, 5);
    const open = rowOf(0, { outcome: null });
    await insert(place.db, open);
    await retain(place, 5, { at: now + 7 * dayMs });
    assert.deepEqual(await idsOf(place.db), [open.id]);
    await place.db.updateTable('jobs').set({ outcome: 'failed' }).execute();
    await retain(place, 5, { at: now + 7 * dayMs });
    assert.deepEqual(await idsOf(place.db), []);
    await place.db.destroy();
  });

  test('a partition that gets a row while it is exported is not dropped with it, and the row is exported', async () => {
    const place = await openPlace('Postgres');
    await retain(place, 5);
    const [old, late] = [rowOf(0), rowOf(0)];
    await insert(place.db, old);
    const options = { at: now + 7 * dayMs, jobExport: 'jsonl' } as const;
    await retain(
      exportingSlowly(place, () => insert(place.db, late)),
      5,
      options,
    );
    assert.deepEqual(await unexported(place, [old, late]), []);
    for (const _ of [1, 2]) await retain(place, 5, options);
    assert.deepEqual(await unexported(place, [old, late]), []);
    assert.deepEqual(await idsOf(place.db), []);
    assert.equal(await partitionOf(place.db, late.id), 'jobs_rest');
    await place.db.destroy();
  });

  test('several processes that make partitions and drop them at once do each once', async () => {
    const place = await openPlace('Postgres');
    const others = await Promise.all([1, 2, 3].map(() => openPlace('Postgres', place.databaseUrl)));
    await Promise.all(others.map((other) => retain(other, 5)));
    await insert(place.db, rowOf(0), rowOf(-1));
    await Promise.all(others.map((other) => retain(other, 5, { at: now + 8 * dayMs })));
    assert.deepEqual(await idsOf(place.db), []);
    await retain(place, 5, { at: now + 8 * dayMs });
    assert.ok((await readPartitions(place.db)).length >= 8);
    await Promise.all([place, ...others].map(({ db }) => db.destroy()));
  });

  /** Fills the table of jobs with ended ones, as of `at`. */
  async function fill(client: pg.Client, at: number): Promise<void> {
    await client.query(`insert into jobs (id, account_id, api_key_id, endpoint, capability, model, vendor, stream, created_at,
      outcome, attempts, retention_ms) select lpad(to_hex(${at} + n / 20), 12, '0') || '7' || lpad(to_hex(n), 19, '0'), 'default', 'k',
      'chat', 'chat', 'm', '', 0, ${at}, 'completed', 1, 0 from generate_series(1, ${rows}) as n`);
  }

  /** Writes a job, as the release before does: the id alone decides. */
  async function write(client: pg.Client, id: string): Promise<void> {
    await client.query(
      `insert into jobs (id, account_id, api_key_id, endpoint, capability, model, vendor, stream, created_at, attempts, retention_ms)
       select id, account_id, api_key_id, endpoint, capability, model, vendor, stream, created_at, attempts, retention_ms
       from json_populate_recordset(null::jobs, $1::json)
       on conflict (id) do update set outcome = 'completed' where jobs.outcome is null`,
      [JSON.stringify([{ ...rowOf(0, { outcome: null }), id }])],
    );
  }

  /** Writes jobs one after another during `work`. Returns how many, and the longest that one took, in ms. */
  async function writeDuring(
    url: string,
    work: () => Promise<unknown>,
  ): Promise<{ written: number; longestMs: number }> {
    const client = await connect(url);
    let [written, longestMs, isDone] = [0, 0, false];
    const writing = (async () => {
      while (!isDone) {
        const began = performance.now();
        await write(client, newJobId(now));
        longestMs = Math.max(longestMs, performance.now() - began);
        written++;
      }
    })();
    try {
      await work();
    } finally {
      isDone = true;
      await writing;
      await client.end();
    }
    return { written, longestMs };
  }

  test('a database of the release before keeps its rows and indexes, is written to meanwhile, and that release writes on', {
    timeout,
  }, async (t) => {
    const url = await server.createDatabase();
    await migratePostgres(url, { migrations: readMigrations('postgres').filter(({ name }) => name < '016') });
    const client = await connect(url);
    await fill(client, now - dayMs);
    const indexesOf = async (table: string): Promise<number> =>
      (await client.query('select 1 from pg_index where indrelid = $1::regclass', [table])).rowCount ?? 0;
    const indexes = await indexesOf('jobs');
    let place: Place | undefined;
    const { written, longestMs } = await writeDuring(url, async () => {
      place = await openPlace('Postgres', url);
    });
    t.diagnostic(
      `migration of ${rows} rows: the longest of ${written} inserts beside it took ${longestMs.toFixed()} ms`,
    );
    const { db, blobs } = place as unknown as Place;
    const id = newJobId(now);
    for (const _ of [1, 2]) await write(client, id);
    const row = await db.selectFrom('jobs').select('outcome').where('id', '=', id).executeTakeFirstOrThrow();
    assert.equal(row.outcome, 'completed');
    const counted = await client.query<{ count: number }>('select count(*)::int from jobs');
    assert.equal(counted.rows[0]?.count, rows + written + 1);
    assert.equal(await indexesOf('jobs_first'), indexes);
    // Its days are deleted by rows, because it takes new ones for a month.
    await db.updateTable('jobs').set({ outcome: 'failed' }).where('outcome', 'is', null).execute();
    await retain({ db, blobs }, 30, { at: now + 31 * dayMs });
    assert.deepEqual(await idsOf(db), []);
    const first = "select 1 from pg_class where relname = 'jobs_first'";
    assert.equal((await client.query(first)).rowCount, 1);
    await retain({ db, blobs }, 30, { at: now + 62 * dayMs });
    assert.equal((await client.query(first)).rowCount, 0);
    await client.end();
    await db.destroy();
  });

  test('a day with many rows is dropped at once, and inserts beside it go on', { timeout }, async (t) => {
    const place = await openPlace('Postgres');
    // The first partition takes in all that was before the day on which the database was made, which may not be this file's `now`.
    const today = noonOf(Date.now());
    await retain(place, 5, { at: today });
    const client = await connect(place.databaseUrl as string);
    await fill(client, today);
    // What is measured is the drop: the partitions of the days before it are there.
    await retain(place, undefined, { at: today + 6 * dayMs });
    const { written, longestMs } = await writeDuring(place.databaseUrl as string, async () => {
      const began = performance.now();
      for (const partition of await readPartitions(place.db)) {
        if (partition.to <= newJobId(today + dayMs / 2) && partition.from !== undefined)
          await dropPartition(place.db, partition);
      }
      t.diagnostic(`drop of ${rows} rows: ${(performance.now() - began).toFixed()} ms`);
    });
    t.diagnostic(`the longest of ${written} inserts beside it took ${longestMs.toFixed()} ms`);
    const left = await client.query<{ count: number }>("select count(*)::int from jobs where outcome = 'completed'");
    assert.equal(left.rows[0]?.count, 0);
    await client.end();
    await place.db.destroy();
  });
});

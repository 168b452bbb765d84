import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { Registry } from 'prom-client';
import type { LedgerItem } from '../../api/ledger/job-ledger.ts';
import type { OutboxConsumer as Consumer } from '../../api/ledger/outbox/outbox-consumer.ts';
import type { Database } from '../../shared/database/database.ts';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import { databaseSettings } from '../support/database-settings.ts';
import { eventually } from '../support/eventually.ts';
import { JobFixture } from '../support/faults/job-fixture.ts';
import { loadProduct } from '../support/gateway.ts';

const { accountKeys, jobKeys, quarantineKey, spoolsKey } =
  await loadProduct<typeof import('../../shared/redis/keys.ts')>('shared/redis/keys');
const { openDatabase } =
  await loadProduct<typeof import('../../shared/database/database.ts')>('shared/database/database');
const { SqliteError } = await loadProduct<typeof import('../../shared/database/sqlite-dialect.ts')>(
  'shared/database/sqlite-dialect',
);
const { createLogger } = await loadProduct<typeof import('../../shared/runtime/log.ts')>('shared/runtime/log');
const { createApiMetrics } =
  await loadProduct<typeof import('../../shared/runtime/metrics.ts')>('shared/runtime/metrics');
const { recordText } = await loadProduct<typeof import('../../shared/jobs/settlement/outbox.ts')>(
  'shared/jobs/settlement/outbox',
);
const { Blobs } = await loadProduct<typeof import('../../shared/blobs/blobs.ts')>('shared/blobs/blobs');
const { AcceptedJobs } =
  await loadProduct<typeof import('../../api/ledger/accepted-jobs.ts')>('api/ledger/accepted-jobs');
const { JobLedger } = await loadProduct<typeof import('../../api/ledger/job-ledger.ts')>('api/ledger/job-ledger');
const { LostJobs } = await loadProduct<typeof import('../../api/ledger/lost-jobs.ts')>('api/ledger/lost-jobs');
const { OutboxGroup } = await loadProduct<typeof import('../../api/ledger/outbox/outbox-group.ts')>(
  'api/ledger/outbox/outbox-group',
);
const { OutboxConsumer } = await loadProduct<typeof import('../../api/ledger/outbox/outbox-consumer.ts')>(
  'api/ledger/outbox/outbox-consumer',
);
const { OutboxSpool } = await loadProduct<typeof import('../../api/ledger/outbox/outbox-spool.ts')>(
  'api/ledger/outbox/outbox-spool',
);
const { Backlog, outboxSize } = await loadProduct<typeof import('../../api/ledger/outbox/outbox-size.ts')>(
  'api/ledger/outbox/outbox-size',
);
const { Quarantine } =
  await loadProduct<typeof import('../../api/ledger/outbox/quarantine.ts')>('api/ledger/outbox/quarantine');
const { Spool } = await loadProduct<typeof import('../../api/ledger/outbox/spool.ts')>('api/ledger/outbox/spool');
const { StoredJobs } = await loadProduct<typeof import('../../api/ledger/stored-jobs.ts')>('api/ledger/stored-jobs');
const { UnreadableEntries } = await loadProduct<typeof import('../../api/ledger/outbox/unreadable-entries.ts')>(
  'api/ledger/outbox/unreadable-entries',
);

const { log } = createLogger('silent', 'test');
const account = 'account';
const outbox = accountKeys.outbox(account);
const hour = 3_600_000;
const isSoak = process.env.SLUICE_SOAK === '1';
/** Records of the outage, and what the outboxes may take of Redis: half an hour at 500 a second, or much less of both. */
const outage = isSoak ? { records: 900_000, bytes: 64_000_000 } : { records: 12_000, bytes: 1_000_000 };

let jobs: JobFixture;
let db: Database;
let dataDir: string;
let ledger: InstanceType<typeof JobLedger>;
let isAway = false;
const consumers: Consumer[] = [];

before(async () => {
  jobs = await JobFixture.start();
});
after(() => jobs?.stop());

beforeEach(async () => {
  await jobs.redis.flushall();
  dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-spool-'));
  db = await openDatabase(await databaseSettings(dataDir));
  const viewOf = () => ({ stream: () => () => [], held: () => '' });
  const options = { db, redis: jobs.redis, blobs: await Blobs.open(dataDir), retentionMs: 24 * hour, blobMs: hour };
  ledger = new JobLedger({ ...options, viewOf, metrics: createApiMetrics(new Registry()), log });
  isAway = true;
});
afterEach(async () => {
  await closeAll();
  await db.destroy();
  await rm(dataDir, { recursive: true, force: true });
});

async function closeAll(): Promise<void> {
  await Promise.all(consumers.splice(0).map((consumer) => consumer.close(2000)));
}

const folder = () => join(dataDir, 'spool');

/** A consumer as an api process has it, whose database is away while `isAway`. */
async function consume({ maxBytes = 1, spoolBytes = 1e9 } = {}) {
  const { redis } = jobs;
  const group = new OutboxGroup({ redis, isCluster: false, name: `consumer${consumers.length}`, takeOverMs: 200 });
  const spool = await Spool.open({ folder: folder(), maxBytes: spoolBytes, minFreeBytes: 0, log });
  const backlog = new Backlog(redis, maxBytes);
  const unreadable = new UnreadableEntries(log);
  const writeItems = async (items: readonly LedgerItem[]) => {
    if (isAway) throw new SqliteError({ message: 'database is locked', code: 'SQLITE_BUSY' });
    return await ledger.writeItems(items);
  };
  const consumer = new OutboxConsumer({
    ...{ group, isCluster: false, unreadable, log, takeOverRoundMs: 50, quarantine: new Quarantine(redis) },
    store: { writeItems, probe: () => ledger.probe() },
    spool: new OutboxSpool({
      ...{ redis, group, spool, backlog, unreadable, log },
      read: async (item) => await ledger.read(item.record),
      release: (items) => ledger.release(items),
    }),
  });
  consumers.push(consumer);
  return { spool, consumer };
}

function textOf(job: JobIdentity): string {
  return recordText({
    ...job,
    ...{ beganAt: job.createdAt, endedAt: job.createdAt, vendor: 'sandbox', outcome: 'completed' },
    ...{ errorCode: undefined, attempts: 1 },
    usage: '{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}',
  });
}

/** Puts records into the outbox, as settlements do. */
async function send(count: number): Promise<string[]> {
  const made = Array.from({ length: count }, () => jobs.identity());
  const pipeline = jobs.redis.pipeline();
  for (const job of made) pipeline.xadd(outbox, '*', 'r', textOf(job), 'c', 5);
  await pipeline.exec();
  return made.map(({ id }) => id);
}

const files = async () => (await readdir(folder())).filter((name) => name.endsWith('.jsonl'));
const ids = async () => (await db.selectFrom('jobs').select('id').orderBy('id').execute()).map(({ id }) => id);
const isEmpty = async (): Promise<void> => assert.equal(await jobs.redis.xlen(outbox), 0, 'the outbox is not empty');
const isSpooled = async (): Promise<void> => {
  await isEmpty();
  assert.ok((await files()).length > 0);
};

describe('the outbox while the database is away', () => {
  test('records over the outbox limit go to the disk, survive the process, and are in the database once when it is back', async () => {
    const { spool } = await consume();
    const sent = await send(700);
    await eventually(isSpooled);
    assert.equal(spool.records, 700);
    for (const name of [...(await files()), 'name']) {
      assert.equal((await stat(join(folder(), name))).mode & 0o777, 0o600);
    }
    assert.equal((await stat(folder())).mode & 0o777, 0o700);
    assert.equal(await jobs.redis.hlen(spoolsKey), 1, 'others are told');
    await closeAll();
    isAway = false;
    const next = await consume();
    assert.deepEqual([next.spool.name, next.spool.records], [spool.name, 700]);
    await eventually(async () => assert.deepEqual(await ids(), [...sent].sort()));
    await eventually(async () => assert.deepEqual(await files(), []));
    await eventually(async () => assert.equal(await jobs.redis.hlen(spoolsKey), 0));
    const { total } = await db
      .selectFrom('usage_hours')
      .select((is) => is.fn.sum<number>('cost').as('total'))
      .where('account_id', '=', account)
      .executeTakeFirstOrThrow();
    assert.equal(Number(total), 3500);
  });

  test('records within the outbox limit stay in Redis while the database is away', async () => {
    await consume({ maxBytes: 10_000_000 });
    const sent = await send(50);
    await new Promise((resolve) => setTimeout(resolve, 800));
    assert.deepEqual([await jobs.redis.xlen(outbox), await files()], [50, []]);
    isAway = false;
    await eventually(async () => assert.deepEqual(await ids(), [...sent].sort()));
  });

  test('records that a process spooled before it removed them from the outbox are written once', async () => {
    const sent = await send(20);
    const entries = await jobs.redis.xrange(outbox, '-', '+');
    await mkdir(folder(), { mode: 0o700 });
    const spool = await Spool.open({ folder: folder(), maxBytes: 1e9, minFreeBytes: 0, log });
    await spool.add(entries.map(([, [, text, , charge]]) => JSON.stringify({ v: 1, key: outbox, text, charge })));
    await writeFile(join(folder(), '000000000000001-x.3.jsonl.tmp'), '{"v":1,"key":"');
    isAway = false;
    await consume();
    await eventually(isEmpty);
    await eventually(async () => assert.deepEqual(await files(), []));
    assert.deepEqual(await ids(), [...sent].sort());
  });

  test('a damaged line of the spool goes to quarantine, and a line of a later version returns to its outbox', async () => {
    const job = jobs.identity();
    const later = textOf(jobs.identity()).replace('"outcome":"completed"', '"outcome":"paused"');
    const spool = await Spool.open({ folder: folder(), maxBytes: 1e9, minFreeBytes: 0, log });
    const line = (text: string) => JSON.stringify({ v: 1, key: outbox, text, charge: '5' });
    await spool.add(['{"v":1,"key":', line(later), line(textOf(job))]);
    isAway = false;
    await consume();
    await eventually(async () => assert.deepEqual(await ids(), [job.id]));
    await eventually(async () => assert.deepEqual(await files(), []));
    const [kept] = await jobs.redis.lrange(quarantineKey, 0, -1);
    assert.equal(JSON.parse(kept as string).record, '{"v":1,"key":');
    const entries = await jobs.redis.xrange(outbox, '-', '+');
    assert.deepEqual(
      entries.map(([, fields]) => fields),
      [['r', later, 'c', '5']],
    );
  });

  test('an answer that is to be stored is spooled with its record', async () => {
    const job = await jobs.create({ retentionMs: 24 * hour });
    await jobs.take(job);
    await jobs.write(job, 1, 1, ['a', 'b']);
    await jobs.end(job, { attempt: 1 });
    await jobs.redis.xadd(outbox, '*', 'r', textOf(job), 'c', 5);
    await consume();
    await eventually(isSpooled);
    const expiresIn = await jobs.redis.pttl(jobKeys.log(job.id));
    assert.ok(expiresIn > 0 && expiresIn <= 300_000, `Redis keeps it for ${expiresIn} ms`);
    await jobs.redis.del(jobKeys.state(job.id), jobKeys.log(job.id));
    isAway = false;
    await eventually(async () => assert.deepEqual(await ids(), [job.id]));
    const stored = new StoredJobs({ db, redis: jobs.redis, blobs: await Blobs.open(dataDir) }, hour);
    assert.deepEqual(
      (await stored.findAnswer(job))?.map(({ text }) => text),
      ['"a"', '"b"', '{}'],
    );
  });

  test('a job whose record is in a spool is not treated as lost, until its spool is silent for long', async () => {
    const job = jobs.identity({ retentionMs: 24 * hour, createdAt: Date.now() - hour });
    await new AcceptedJobs(db, hour, log).add(job, '{}');
    await jobs.redis.xadd(outbox, '*', 'r', textOf(job), 'c', 5);
    await consume();
    await eventually(isSpooled);
    const queue = () => ({ has: async () => false }) as never;
    const lost = new LostJobs({ redis: jobs.redis, queue, db, log, roundMs: hour, minAgeMs: 0 });
    try {
      for (let round = 0; round < 3; round++) await lost.sweep();
      const { outcome } = await db.selectFrom('jobs').select('outcome').executeTakeFirstOrThrow();
      assert.equal(outcome, null);
      // A process that has said nothing of its disk for long has taken it along.
      const [name] = await jobs.redis.hkeys(spoolsKey);
      await closeAll();
      await jobs.redis.hset(spoolsKey, name as string, Date.now() - 2 * hour);
      for (let round = 0; round < 2; round++) await lost.sweep();
      const after = await db.selectFrom('jobs').select('outcome').executeTakeFirstOrThrow();
      assert.equal(after.outcome, 'failed');
    } finally {
      lost.close();
    }
  });

  test('records stay in Redis when the spool is full, and none is lost', async () => {
    const { spool } = await consume({ spoolBytes: 100_000 });
    const sent = await send(100);
    await eventually(isSpooled);
    sent.push(...(await send(300)));
    await new Promise((resolve) => setTimeout(resolve, 800));
    assert.equal((await jobs.redis.xlen(outbox)) + spool.records, 400);
    assert.ok(spool.bytes <= 100_000);
    isAway = false;
    await eventually(async () => assert.deepEqual(await ids(), [...sent].sort()), 20_000);
    await eventually(isEmpty);
  });

  test(`${outage.records} records pass through the spool, and the outboxes never exceed their limit by much`, async (t) => {
    await consume({ maxBytes: outage.bytes });
    const used = async () => Number(/^used_memory:(\d+)/m.exec(await jobs.redis.info('memory'))?.[1]);
    const before = await used();
    const sent: string[] = [];
    let [peak, peakUsed] = [0, 0];
    while (sent.length < outage.records) {
      sent.push(...(await send(500)));
      // Records come faster here than the consumer looks, once a second at most: it is waited for, as a second would.
      await eventually(async () => {
        const { bytes } = await outboxSize(jobs.redis);
        [peak, peakUsed] = [Math.max(peak, bytes), Math.max(peakUsed, await used())];
        assert.ok(bytes < 1.5 * outage.bytes, `${bytes} bytes`);
      }, 60_000);
    }
    t.diagnostic(`outboxes: at most ${peak} bytes; Redis: at most ${peakUsed - before} bytes more than before`);
    assert.ok(peakUsed - before < (isSoak ? 200_000_000 : 6_000_000), `${peakUsed - before} bytes`);
    isAway = false;
    const backAt = Date.now();
    await eventually(isEmpty, 600_000);
    await eventually(async () => assert.deepEqual(await files(), []), 600_000);
    const { count } = await db
      .selectFrom('jobs')
      .select((is) => is.fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow();
    assert.equal(Number(count), sent.length);
    t.diagnostic(`all of them in the database ${Date.now() - backAt} ms after its return`);
  });
});

test('the spool removes only the files it wrote, and leaves unknown files alone', async () => {
  await mkdir(folder(), { mode: 0o700 });
  await writeFile(join(folder(), 'notes.txt'), 'an operator’s');
  const spool = await Spool.open({ folder: folder(), maxBytes: 1000, minFreeBytes: 0, log });
  await spool.add(['one', 'two']);
  const file = await spool.oldest();
  assert.deepEqual(file?.lines, ['one', 'two']);
  assert.equal(await spool.hasRoom(10_000), false);
  await file?.remove();
  assert.equal(await spool.oldest(), undefined);
  assert.equal(await readFile(join(folder(), 'notes.txt'), 'utf8'), 'an operator’s');
});

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { Registry } from 'prom-client';
import type { LedgerItem } from '../../../api/ledger/job-ledger.ts';
import type { OutboxConsumer as Consumer } from '../../../api/ledger/outbox/outbox-consumer.ts';
import type { OutboxGroupOptions } from '../../../api/ledger/outbox/outbox-group.ts';
import type { Database } from '../../../shared/database/database.ts';
import type { JobIdentity } from '../../../shared/jobs/job-state.ts';
import type { JobRecord } from '../../../shared/jobs/settlement/outbox.ts';
import { databaseSettings } from '../../support/database-settings.ts';
import { eventually } from '../../support/eventually.ts';
import { JobFixture } from '../../support/faults/job-fixture.ts';
import { loadProduct } from '../../support/gateway.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';

const { accountKeys, jobKeys } = await loadProduct<typeof import('../../../shared/redis/keys.ts')>('shared/redis/keys');
const { openDatabase } =
  await loadProduct<typeof import('../../../shared/database/database.ts')>('shared/database/database');
const { SqliteError } = await loadProduct<typeof import('../../../shared/database/sqlite-dialect.ts')>(
  'shared/database/sqlite-dialect',
);
const { createLogger } = await loadProduct<typeof import('../../../shared/runtime/log.ts')>('shared/runtime/log');
const { createApiMetrics } =
  await loadProduct<typeof import('../../../shared/runtime/metrics.ts')>('shared/runtime/metrics');
const { settle } = await loadProduct<typeof import('../../../shared/jobs/settlement/settle.ts')>(
  'shared/jobs/settlement/settle',
);
const { recordText } = await loadProduct<typeof import('../../../shared/jobs/settlement/outbox.ts')>(
  'shared/jobs/settlement/outbox',
);
const { Blobs } = await loadProduct<typeof import('../../../shared/blobs/blobs.ts')>('shared/blobs/blobs');
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
const { StoredJobs } = await loadProduct<typeof import('../../../api/ledger/stored-jobs.ts')>('api/ledger/stored-jobs');
const { deleteExpiredBodies } =
  await loadProduct<typeof import('../../../api/ledger/expired-bodies.ts')>('api/ledger/expired-bodies');

const { log } = createLogger('silent', 'test');
const account = 'account';
const outbox = accountKeys.outbox(account);
const day = 86_400_000;

let jobs: JobFixture;
let db: Database;
let dataDir: string;
let ledger: InstanceType<typeof JobLedger>;
let blobs: Awaited<ReturnType<typeof Blobs.open>>;
let unreadable: InstanceType<typeof UnreadableEntries>;
let recordsWritten: () => Promise<number>;
const consumers: Consumer[] = [];

before(async () => {
  jobs = await JobFixture.start();
});
after(() => jobs?.stop());

beforeEach(async () => {
  await jobs.redis.flushall();
  dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-ledger-'));
  db = await openDatabase(await databaseSettings(dataDir));
  blobs = await Blobs.open(dataDir);
  unreadable = new UnreadableEntries(log);
  const metrics = createApiMetrics(new Registry());
  recordsWritten = async () => (await metrics.records.get()).values[0]?.value ?? 0;
  const viewOf = () => ({ stream: () => () => [], held: () => '' });
  ledger = new JobLedger({ db, redis: jobs.redis, blobs, viewOf, retentionMs: 30 * day, blobMs: day, metrics, log });
});
afterEach(async () => {
  await Promise.all(consumers.splice(0).map((consumer) => consumer.close(2000)));
  await db.destroy();
  await rm(dataDir, { recursive: true, force: true });
});

function recordOf(job: JobIdentity, more: Partial<JobRecord> = {}): JobRecord {
  const times = { beganAt: job.createdAt + 1, endedAt: job.createdAt + 2 };
  const usage = '{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}';
  return {
    ...job,
    ...times,
    vendor: 'sandbox',
    outcome: 'completed',
    errorCode: undefined,
    attempts: 1,
    usage,
    ...more,
  };
}

/** A job that has ended and is held, and its settlement. */
async function endedJob(more: Partial<JobRecord> = {}) {
  const job = jobs.identity();
  await jobs.redis.zadd(accountKeys.holds(account), 1, `${job.id} ${job.account} ${job.apiKeyId} chat`);
  const end = { outcome: 'completed', errorCode: undefined, began: true, cost: 1200, tokens: 7 } as const;
  return { ...job, ...end, jobId: job.id, record: recordText(recordOf(job, more)) };
}

function groupOf(name: string, more: Partial<OutboxGroupOptions> = {}) {
  return new OutboxGroup({ redis: jobs.redis, isCluster: false, name, ...more });
}

function consume(
  name: string,
  {
    group,
    ...more
  }: Partial<OutboxGroupOptions> & {
    write?: (records: readonly JobRecord[]) => Promise<void>;
    group?: ReturnType<typeof groupOf>;
  } = {},
): Consumer {
  const write = more.write ?? ((records: readonly JobRecord[]) => ledger.write(records));
  const writeItems = async (items: readonly LedgerItem[]) => {
    await write(items.map(({ record }) => record));
    return [];
  };
  const consumer = new OutboxConsumer({
    ...{ group: group ?? groupOf(name, more), isCluster: false, log, takeOverRoundMs: 50 },
    ...{ store: { writeItems, probe: () => ledger.probe() }, quarantine: new Quarantine(jobs.redis), unreadable },
  });
  consumers.push(consumer);
  return consumer;
}

const rows = () => db.selectFrom('jobs').selectAll().orderBy('id').execute();
const isDrained = async (): Promise<void> => assert.equal(await jobs.redis.xlen(outbox), 0, 'the outbox is not empty');

describe('outbox', () => {
  test('the outbox gets one record of a held job, however often it is settled, and none of a job without a hold', async () => {
    const job = await endedJob();
    await settle(jobs.redis, [job]);
    await settle(jobs.redis, [job]);
    await settle(jobs.redis, [{ ...job, jobId: jobs.identity().id }]);
    const entries = await jobs.redis.xrange(outbox, '-', '+');
    assert.deepEqual(
      entries.map(([, fields]) => fields),
      [['r', job.record, 'c', '1200']],
    );
    await settle(jobs.redis, [{ ...(await endedJob()), record: '' }]);
    assert.equal(await jobs.redis.xlen(outbox), 1);
  });
});

describe('OutboxConsumer', () => {
  test('outbox consumers write every record once and leave the outbox empty', async () => {
    consume('one');
    consume('two');
    const settled = await Promise.all(Array.from({ length: 700 }, () => endedJob()));
    await Promise.all(settled.map((job) => settle(jobs.redis, [job])));
    await eventually(isDrained);
    const written = await rows();
    assert.deepEqual(
      written.map(({ id }) => id),
      settled.map(({ id }) => id).sort(),
    );
    assert.equal(await recordsWritten(), 700);
    const { id, createdAt } = settled[0] as JobIdentity;
    assert.deepEqual(
      written.find((row) => row.id === id),
      {
        ...{ id, account_id: 'account', api_key_id: 'key', endpoint: 'chat', capability: 'chat', model: 'model' },
        ...{ vendor: 'sandbox', stream: 1, created_at: createdAt, began_at: createdAt + 1, ended_at: createdAt + 2 },
        ...{ outcome: 'completed', error_code: null, attempts: 1, input_tokens: 3, output_tokens: 4, retention_ms: 0 },
        usage: '{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}',
        ...{ cached_tokens: 0, saved: null },
        ...{ cost: 1200, vendor_cost: null, error_details: null, metadata: null, served_model: null, first_at: null },
      },
    );
  });

  test('an outbox consumer takes over the entries of a dead one, whose name is forgotten only then', async () => {
    const job = await endedJob();
    const dead = groupOf('dead');
    await dead.read();
    await settle(jobs.redis, [job]);
    const { entries } = await dead.read();
    assert.equal(entries.length, 1);
    const living = groupOf('living', { takeOverMs: 0, forgetMs: 0 });
    await delay(5);
    await living.forgetDead();
    assert.match(JSON.stringify(await jobs.redis.xinfo('CONSUMERS', outbox, 'ledger')), /"dead"/, 'pending is kept');
    consume('other', { takeOverMs: 50 });
    await eventually(isDrained);
    assert.deepEqual(
      (await rows()).map(({ id }) => id),
      [job.id],
    );
    await living.forgetDead();
    assert.doesNotMatch(JSON.stringify(await jobs.redis.xinfo('CONSUMERS', outbox, 'ledger')), /"dead"/);
  });

  test('an outbox consumer writes a record once that a dead one has written but not deleted', async () => {
    const dead = groupOf('dead');
    await dead.read();
    const job = await endedJob();
    await settle(jobs.redis, [job]);
    await dead.read();
    await ledger.write([recordOf(job)]);
    consume('other', { takeOverMs: 50 });
    await eventually(isDrained);
    assert.equal((await rows()).length, 1);
    assert.equal(await recordsWritten(), 1);
  });

  test('an outbox consumer leaves no entry behind when another one dies while it acknowledges it', async () => {
    const proxy = await startTcpProxy(jobs.server.port);
    const doomed = new Redis(proxy.url);
    try {
      const dying = groupOf('dying', { redis: doomed });
      await dying.read();
      const job = await endedJob();
      await settle(jobs.redis, [job]);
      const { entries } = await dying.read();
      const steps = ['xdel', 'xack'];
      const stopped = proxy.stopAt({ matches: ([name = '']) => steps.includes(name.toLowerCase()), stop: 'after' });
      await ledger.write([recordOf(job)]);
      dying.acknowledge(entries).catch(() => undefined);
      await stopped;
      doomed.disconnect();
      consume('other', { takeOverMs: 50 });
      await eventually(isDrained);
      await eventually(async () => assert.deepEqual((await jobs.redis.xpending(outbox, 'ledger'))[0], 0));
      assert.equal((await rows()).length, 1);
    } finally {
      doomed.disconnect();
      await proxy.close();
    }
  });

  test('an outbox consumer deletes nothing while the database fails, and retries until it works', async () => {
    let failures = 3;
    const seen: number[] = [];
    consume('one', {
      write: async (records) => {
        seen.push(await jobs.redis.xlen(outbox));
        if (failures-- > 0) throw new SqliteError({ message: 'the database is away', code: 'SQLITE_BUSY' });
        await ledger.write(records);
      },
    });
    await settle(jobs.redis, [await endedJob()]);
    await eventually(isDrained);
    assert.deepEqual(seen, [1, 1, 1, 1]);
    assert.equal((await rows()).length, 1);
  });

  test('an outbox consumer leaves and counts unreadable entries, and continues after Redis was emptied', async () => {
    const { record } = await endedJob();
    const later = record.replace('"outcome":"completed"', '"outcome":"suspended"');
    for (const text of ['{"id":"x"}', 'no JSON', later]) await jobs.redis.xadd(outbox, '*', 'r', text, 'c', '5');
    const readable = await endedJob();
    await settle(jobs.redis, [readable]);
    consume('one', { takeOverMs: 50 });
    await eventually(async () => assert.equal((await rows()).length, 1));
    await eventually(() => assert.equal(unreadable.size, 3));
    await delay(200);
    assert.equal(await jobs.redis.xlen(outbox), 3, 'what cannot be read stays');
    assert.equal((await jobs.redis.xpending(outbox, 'ledger'))[0], 3);
    await jobs.redis.flushall();
    await settle(jobs.redis, [await endedJob()]);
    await eventually(async () => assert.equal((await rows()).length, 2));
  });

  test('an outbox consumer writes all entries before it closes, and deletes its name', async () => {
    const consumer = consume('leaving');
    await eventually(async () => assert.equal(await jobs.redis.exists(outbox), 1, 'the group is not there'));
    const settled = await Promise.all(Array.from({ length: 20 }, () => endedJob()));
    await settle(jobs.redis, settled);
    await consumer.close(5000);
    assert.equal((await rows()).length, 20);
    assert.doesNotMatch(JSON.stringify(await jobs.redis.xinfo('CONSUMERS', outbox, 'ledger')), /leaving/);
  });

  test('an outbox consumer that is closed while it reads nothing writes what was added before', async () => {
    const group = groupOf('reading');
    const read = group.read.bind(group);
    let closed: Promise<void> | undefined;
    const ended = await endedJob();
    group.read = async () => {
      const batch = await read();
      if (closed !== undefined) return batch;
      await settle(jobs.redis, [ended]);
      closed = consumer.close(5000);
      return batch;
    };
    const consumer = consume('reading', { group });
    await eventually(() => assert.ok(closed, 'the group was not read'));
    await closed;
    assert.equal((await rows()).length, 1);
  });
});

describe('JobLedger', () => {
  test('the ledger never overwrites a terminal state', async () => {
    const job = jobs.identity({ retentionMs: day });
    await new AcceptedJobs(db, day, log).add(job, '{}');
    assert.equal((await rows())[0]?.outcome, null);
    await ledger.write([recordOf(job, { outcome: 'cancelled', errorCode: 'cancelled' })]);
    await ledger.write([recordOf(job)]);
    assert.deepEqual(
      (await rows()).map(({ outcome, error_code: code }) => [outcome, code]),
      [['cancelled', 'cancelled']],
    );
    assert.equal(await recordsWritten(), 1);
  });

  test('the ledger writes records with texts that databases reject', async () => {
    const texts = ['model-\0', 'model-\ud800', 'model-"\\u0000', 'model-😀'];
    await ledger.write(texts.map((model) => recordOf(jobs.identity(), { model, usage: JSON.stringify({ model }) })));
    const written = await rows();
    assert.deepEqual(written.map(({ usage }) => JSON.parse(usage ?? '').model).sort(), [...texts].sort());
    assert.ok(written.every(({ model }) => model.startsWith('model-')));
    assert.equal(await recordsWritten(), texts.length);
  });

  test('the ledger stores the answer of a retained job once, and lets its Redis keys expire soon', async () => {
    const job = await jobs.create({ retentionMs: day });
    await new AcceptedJobs(db, day, log).add(job, '{"messages":[]}');
    await jobs.take(job);
    await jobs.write(job, 1, 1, ['a', 'b']);
    await jobs.end(job, { attempt: 1 });
    await ledger.write([recordOf(job)]);
    for (const key of [jobKeys.state(job.id), jobKeys.log(job.id)]) {
      const expiresIn = await jobs.redis.pttl(key);
      assert.ok(expiresIn > 0 && expiresIn <= 300_000, `it expires in ${expiresIn} ms`);
    }
    const stored = new StoredJobs({ db, redis: jobs.redis, blobs }, 60_000);
    const shown = async () => (await stored.findAnswer(job))?.map(({ seq, type, text }) => [seq, type, text]);
    const whole = [
      [1, 'delta', '"a"'],
      [2, 'delta', '"b"'],
      [3, 'end', '{}'],
    ];
    assert.deepEqual(await shown(), whole);
    await jobs.redis.del(jobKeys.log(job.id));
    await ledger.write([recordOf(job)]);
    assert.deepEqual(await shown(), whole);
  });

  test('the ledger stores an answer over 1 MiB as a blob, and expires it with its blob', async () => {
    const job = await jobs.create({ retentionMs: day });
    await jobs.take(job);
    const large = 'x'.repeat(600_000);
    await jobs.write(job, 1, 1, [large, large]);
    await jobs.end(job, { attempt: 1 });
    await ledger.write([recordOf(job)]);
    const row = await db.selectFrom('job_bodies').selectAll().executeTakeFirstOrThrow();
    assert.equal(row.answer, null);
    assert.ok(row.answer_blob !== null && row.expires_at <= Date.now() + day, 'it expires with its blob');
    const frames = await new StoredJobs({ db, redis: jobs.redis, blobs }, 60_000).findAnswer(job);
    assert.deepEqual(
      frames?.map(({ text }) => text.length),
      [600_002, 600_002, 2],
    );
  });

  test('deleteExpiredBodies deletes expired bodies in batches and keeps the rows of their jobs', async () => {
    const accepted = new AcceptedJobs(db, day, log);
    const old = Array.from({ length: 1100 }, () => jobs.identity({ retentionMs: 1, createdAt: Date.now() - 2 * day }));
    const fresh = jobs.identity({ retentionMs: day });
    await Promise.all([...old, fresh].map((job) => accepted.add(job, '{}')));
    await db.updateTable('job_bodies').set({ answer: '0 1\ne{}' }).execute();
    const stored = new StoredJobs({ db, redis: jobs.redis, blobs }, 60_000);
    assert.equal(await stored.findAnswer(old[0] as JobIdentity), undefined);
    assert.equal((await stored.findAnswer(fresh))?.length, 1);
    const deleted: unknown[] = [];
    const watched = db.withPlugin({
      transformQuery: ({ node }) => node,
      transformResult: async ({ result }) => {
        deleted.push(result.numAffectedRows);
        return result;
      },
    });
    assert.equal(await deleteExpiredBodies(watched), 1100);
    assert.deepEqual(deleted, [500n, 500n, 100n], 'others get their turn between the batches');
    const left = await db.selectFrom('job_bodies').select('job_id').execute();
    assert.deepEqual(left, [{ job_id: fresh.id }]);
    assert.equal((await rows()).length, 1101);
  });
});

describe('LostJobs', () => {
  /** Jobs that wait in their queue. */
  const queued = new Set<string>();
  const queue = () => ({
    has: async (id: string) => queued.has(id),
    remove: async (id: string) => queued.delete(id),
  });

  function lostJobs(minAgeMs = 0) {
    const options = { db, redis: jobs.redis, queue, log, minAgeMs };
    const lost = new LostJobs(options as unknown as ConstructorParameters<typeof LostJobs>[0]);
    // Rounds are made by hand.
    lost.close();
    return lost;
  }

  async function accept(more: Partial<JobIdentity> = {}): Promise<JobIdentity> {
    const job = jobs.identity({ retentionMs: day, createdAt: Date.now() - 1000, ...more });
    await new AcceptedJobs(db, day, log).add(job, undefined);
    return job;
  }
  const outcomeOf = async ({ id }: JobIdentity) =>
    (await db.selectFrom('jobs').select('outcome').where('id', '=', id).executeTakeFirst())?.outcome;

  test('a lost job ends as failed with outcome_unknown', async () => {
    const job = await accept();
    const lost = lostJobs();
    await lost.sweep();
    await lost.sweep();
    assert.deepEqual(
      (await rows()).map(({ outcome, error_code: code, ended_at: ended }) => [outcome, code, ended !== null]),
      [['failed', 'outcome_unknown', true]],
    );
    const [frame] = (await new StoredJobs({ db, redis: jobs.redis, blobs }, 60_000).findAnswer(job)) ?? [];
    assert.equal(frame?.type, 'error');
  });

  test('a lost job that is still queued ends as failed with service_unavailable and leaves the queue', async () => {
    const job = await accept();
    queued.add(job.id);
    const lost = lostJobs();
    await lost.sweep();
    await lost.sweep();
    assert.equal((await rows())[0]?.error_code, 'service_unavailable');
    assert.equal(queued.size, 0);
  });

  test('a job with a state in Redis or a young job is not lost', async () => {
    const living = await accept();
    await jobs.redis.hset(jobKeys.state(living.id), 'account', account);
    const young = await accept({ createdAt: Date.now() });
    const lost = lostJobs(500);
    for (let round = 0; round < 3; round++) await lost.sweep();
    assert.equal(await outcomeOf(living), null);
    assert.equal(await outcomeOf(young), null);
  });

  test('a job with a record in the outbox is not lost', async () => {
    const job = await accept();
    await jobs.redis.xadd(outbox, '*', 'r', recordText(recordOf(job)));
    const lost = lostJobs();
    for (let round = 0; round < 3; round++) await lost.sweep();
    assert.equal(await outcomeOf(job), null);
    consume('one');
    await eventually(isDrained);
    await lost.sweep();
    assert.equal(await outcomeOf(job), 'completed');
  });

  test('a lost job is found while the outbox of its account is never empty', async () => {
    const job = await accept();
    const lost = lostJobs();
    const first = (await jobs.redis.xadd(outbox, '*', 'r', 'busy')) as string;
    await lost.sweep();
    await jobs.redis.xadd(outbox, '*', 'r', 'busy');
    await jobs.redis.xdel(outbox, first);
    await lost.sweep();
    assert.equal(await outcomeOf(job), 'failed');
  });
});

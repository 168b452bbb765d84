import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { appendFile, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { Registry } from 'prom-client';
import type { JobIdentity } from '../../../shared/jobs/job-state.ts';
import type { ProcessReports as Reports } from '../../../shared/queue/process-registry.ts';
import { eventually } from '../../support/eventually.ts';
import { noting, QueueFixture } from '../../support/faults/queue-fixture.ts';
import { loadProduct } from '../../support/gateway.ts';

const { ProcessReports, readReports } = await loadProduct<typeof import('../../../shared/queue/process-registry.ts')>(
  'shared/queue/process-registry',
);
const { writtenVersion, writeFor, readVersions, isOtherVersion, countUnread } =
  await loadProduct<typeof import('../../../shared/runtime/wire-version.ts')>('shared/runtime/wire-version');
const { listWorkers } =
  await loadProduct<typeof import('../../../shared/queue/worker-registry.ts')>('shared/queue/worker-registry');
const { accountKeys, jobKeys, processesKey, workerKeys } =
  await loadProduct<typeof import('../../../shared/redis/keys.ts')>('shared/redis/keys');
const { readJobState } = await loadProduct<typeof import('../../../shared/jobs/job-state.ts')>('shared/jobs/job-state');
const { readTask, taskText } =
  await loadProduct<typeof import('../../../shared/jobs/vendor-task.ts')>('shared/jobs/vendor-task');
const { parseRecord, recordText } = await loadProduct<typeof import('../../../shared/jobs/settlement/outbox.ts')>(
  'shared/jobs/settlement/outbox',
);
const { Sweeper } = await loadProduct<typeof import('../../../shared/jobs/settlement/sweeper.ts')>(
  'shared/jobs/settlement/sweeper',
);
const { Spool } = await loadProduct<typeof import('../../../api/ledger/outbox/spool.ts')>('api/ledger/outbox/spool');
const { readSpooledLine, spooledLine } = await loadProduct<
  typeof import('../../../api/ledger/outbox/spooled-records.ts')
>('api/ledger/outbox/spooled-records');
const { createLogger } = await loadProduct<typeof import('../../../shared/runtime/log.ts')>('shared/runtime/log');

const log = createLogger('silent', 'test').log;
/** Of a release after this one, which reads this one, too. */
const later = { oldest: readVersions.newest, newest: readVersions.newest + 1 };

let queues: QueueFixture;
before(async () => {
  queues = await QueueFixture.start();
});
after(() => queues?.stop());

/** How often something was left unread, by kind. */
async function left(kind: string): Promise<number> {
  const registry = new Registry();
  countUnread(registry);
  const [metric] = await registry.getMetricsAsJSON();
  return metric?.values.find(({ labels }) => labels.kind === kind)?.value ?? Number.NaN;
}

describe('the version that a process writes', () => {
  const opened: Reports[] = [];
  const open = async (processId: string, versions = readVersions): Promise<Reports> => {
    const reports = await ProcessReports.open({ redis: queues.jobs.redis, processId, log, versions });
    opened.push(reports);
    return reports;
  };
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((reports) => reports.close()));
    writeFor([]);
  });

  test('a process that starts while Redis takes no writes waits until it does', async () => {
    const { redis } = queues.jobs;
    await redis.config('SET', 'maxmemory', '1');
    const opening = open('worker-early');
    // Its first report has been refused by then.
    await eventually(async () => assert.match(await redis.info('errorstats'), /errorstat_EXECABORT/));
    assert.equal(await Promise.race([opening, 'waits']), 'waits');
    await redis.config('SET', 'maxmemory', '0');
    await opening;
    assert.match((await redis.zrange(processesKey, '0', '-1')).join(), /worker-early/);
  });

  test('a process writes what the oldest running one reads, and its own version once that has left, until it comes back', async () => {
    const old = await open('worker-old');
    const newer = await open('api-newer', later);
    assert.equal(writtenVersion(), readVersions.newest);
    await old.close();
    await newer.report();
    assert.equal(writtenVersion(), later.newest);
    // Rolled back: the one that comes back reports before it claims anything.
    await open('worker-old');
    await newer.report();
    assert.equal(writtenVersion(), readVersions.newest);
  });

  test('a process knows what it is to write before it reports itself', async () => {
    const redis = queues.jobs.redis;
    const now = Number((await redis.time())[0]) * 1000;
    await redis.zadd(processesKey, now - 16_000, 'worker-gone 1 1');
    await readReports(redis);
    assert.equal(writtenVersion(), readVersions.newest);
    await redis.zadd(processesKey, now, 'worker-old 1 1');
    await readReports(redis);
    assert.equal(writtenVersion(), 1);
    await redis.zrem(processesKey, 'worker-old 1 1', 'worker-gone 1 1');
  });

  test('a process that died without leaving no longer counts after three silent reports', async () => {
    const redis = queues.jobs.redis;
    const newer = await open('api-newer', later);
    const now = Number((await redis.time())[0]) * 1000;
    await redis.zadd(processesKey, now - 14_000, `worker-slow ${readVersions.oldest} ${readVersions.newest}`);
    await newer.report();
    assert.equal(writtenVersion(), readVersions.newest);
    await redis.zadd(processesKey, now - 16_000, `worker-slow ${readVersions.oldest} ${readVersions.newest}`);
    await newer.report();
    assert.equal(writtenVersion(), later.newest);
    assert.equal(await redis.zcard(processesKey), 1);
  });
});

describe('what has a version that this build does not read', () => {
  const v = later.newest;

  test('a job of a later version stays in its queue without losing an attempt, and runs once a worker can read it', async () => {
    queues.newQueue();
    const job = await queues.jobs.create({ capability: queues.capability, v });
    await queues.queueWithState(job);
    const before = await left('job');
    const { ran, run } = noting();
    queues.consume(run, { begins: true });
    await eventually(async () => assert.ok((await left('job')) >= before + 2, 'it was not claimed twice'));
    assert.deepEqual(ran, []);
    const state = await queues.jobs.redis.hmget(jobKeys.state(job.id), 'attempt', 'released', 'terminal');
    assert.ok(Number(state[0]) >= 2 && Number(state[0]) - Number(state[1]) <= 1, `attempts and releases: ${state}`);
    assert.equal(state[2], null);
    // As a worker of that version reads it.
    await queues.jobs.redis.hset(`${queues.keysPrefix}job_${job.id}`, 'data', JSON.stringify({ ...job, v: undefined }));
    await eventually(() => assert.deepEqual(ran, [job.id]));
  });

  test('a job state of a later version is a 503 with a retry, and the sweeper leaves it and its hold', async () => {
    queues.newQueue();
    const { redis } = queues.jobs;
    const overdue: Partial<JobIdentity> = { deadlineAt: Date.now() - 1000 };
    const [newer, newerHold, known] = [
      await queues.jobs.create({ v, ...overdue }),
      await queues.jobs.create(overdue),
      await queues.jobs.create(overdue),
    ];
    await assert.rejects(readJobState(redis, newer.id), (error) => isOtherVersion(error));
    const member = ({ id, account, apiKeyId }: JobIdentity) => `${id} ${account} ${apiKeyId} chat`;
    const holds = accountKeys.holds(known.account);
    await redis.zadd(holds, 1, member(newer), 1, `${member(newerHold)} v${v}`, 1, member(known));
    const blobs = { ofRecords: () => ({ delete: async () => undefined }) } as never;
    const sweeper = new Sweeper({ redis, isCluster: false, blobs, queue: () => queues.queue }, log);
    await sweeper.sweep();
    sweeper.close();
    assert.deepEqual(await redis.zrange(holds, '0', '-1'), [member(newer), `${member(newerHold)} v${v}`].sort());
    assert.equal(await redis.hget(jobKeys.state(known.id), 'terminal'), 'failed');
    assert.equal(await redis.hget(jobKeys.state(newer.id), 'terminal'), null);
    assert.equal(await redis.hget(jobKeys.state(newerHold.id), 'terminal'), null);
    assert.ok((await left('hold')) > 0 && (await left('state')) > 0);
  });

  test("a vendor's task of a later version is not read, and the job that has it may still be polled by others", async () => {
    const job = await queues.jobs.create({ capability: 'video', endpoint: 'videos' });
    const first = await queues.jobs.take(job, { repeatable: false });
    assert.equal(first.verdict, 'run');
    const task = { vendor: 'openai', account: 'one', model: 'sora-2', task: 'video_1', attempt: 1, beganAt: 1000 };
    assert.deepEqual(readTask(taskText(task)), task);
    await queues.jobs.redis.hset(jobKeys.state(job.id), 'task', JSON.stringify({ v, ...task }), 'lease', 0);
    assert.deepEqual(await queues.jobs.take(job, { repeatable: false }), { verdict: 'other_version', attempt: 2 });
    await queues.jobs.redis.hset(jobKeys.state(job.id), 'task', JSON.stringify(task), 'lease', 0);
    assert.equal((await queues.jobs.take(job, { repeatable: false })).verdict, 'poll');
  });

  test('a record of a later version is none of this one, and what is written has the version that its format is of', async () => {
    const record = {
      ...{ ...queues.jobs.identity(), beganAt: 1, endedAt: 2, vendor: '', outcome: 'completed' as const },
      ...{ errorCode: undefined, attempts: 1, usage: undefined },
    };
    const text = recordText(record);
    assert.equal(JSON.parse(text).v, readVersions.oldest);
    assert.equal(parseRecord(text)?.id, record.id);
    assert.equal(parseRecord(text.replace(`"v":${readVersions.oldest}`, `"v":${v}`)), undefined);
    // The release before wrote none.
    assert.equal(parseRecord(text.replace(`"v":${readVersions.oldest},`, ''))?.id, record.id);
  });

  test("a worker's report of a later version is not listed", async () => {
    const { redis } = queues.jobs;
    for (const [id, version] of [
      ['known', 1],
      ['newer', v],
    ] as const) {
      await redis.set(workerKeys.report(id), JSON.stringify({ v: version, id, startedAt: 1 }));
      await redis.zadd(workerKeys.seen, 1, id);
    }
    assert.deepEqual(
      (await listWorkers(redis)).map(({ id }) => id),
      ['known'],
    );
  });

  test('a file of the spool of a later version stays on the disk, counts, and delays no other', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-test-spool-'));
    const line = spooledLine(
      { key: 'outbox', id: '1-0', text: '{}', charge: '5', late: undefined },
      {
        record: {} as never,
      },
    );
    const name = (at: number) => `${String(at).padStart(15, '0')}-${randomUUID()}.1.jsonl`;
    const [newer, known] = [name(1), name(2)];
    await appendFile(join(folder, newer), `${line.replace(`"v":${readVersions.oldest}`, `"v":${v}`)}\n`);
    await appendFile(join(folder, known), `${line}\n`);
    const spool = await Spool.open({ folder, maxBytes: 1e6, minFreeBytes: 0, log });
    const first = await spool.oldest();
    assert.equal(first?.name, newer);
    assert.equal(readSpooledLine(first?.lines[0] ?? ''), 'other_version');
    spool.keep(newer);
    const second = await spool.oldest();
    assert.equal(second?.name, known);
    await second?.remove();
    assert.equal(await spool.oldest(), undefined);
    assert.equal(spool.records, 1);
    assert.ok((await readdir(folder)).includes(newer));
    assert.match(await readFile(join(folder, newer), 'utf8'), /"charge":"5"/);
    await rm(folder, { recursive: true });
  });
});

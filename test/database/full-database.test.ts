import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { Registry } from 'prom-client';
import type { Database } from '../../shared/database/database.ts';
import { eventually } from '../support/eventually.ts';
import { JobFixture } from '../support/faults/job-fixture.ts';
import { loadProduct } from '../support/gateway.ts';

const { accountKeys, quarantineKey } =
  await loadProduct<typeof import('../../shared/redis/keys.ts')>('shared/redis/keys');
const { databaseFile, tryDatabase } =
  await loadProduct<typeof import('../../shared/database/database.ts')>('shared/database/database');
const { DatabaseActivity } = await loadProduct<typeof import('../../shared/database/database-activity.ts')>(
  'shared/database/database-activity',
);
const { DatabaseHealth } =
  await loadProduct<typeof import('../../api/ledger/database-health.ts')>('api/ledger/database-health');
const { createLogger } = await loadProduct<typeof import('../../shared/runtime/log.ts')>('shared/runtime/log');
const { createApiMetrics } =
  await loadProduct<typeof import('../../shared/runtime/metrics.ts')>('shared/runtime/metrics');
const { recordText } = await loadProduct<typeof import('../../shared/jobs/settlement/outbox.ts')>(
  'shared/jobs/settlement/outbox',
);
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

const run = promisify(execFile);
const { log } = createLogger('silent', 'test');
const outbox = accountKeys.outbox('account');
const hour = 3_600_000;

describe('an SQLite database whose disk is full', () => {
  let jobs: JobFixture;
  let db: Database;
  const activity = new DatabaseActivity();
  let dataDir: string;
  // Without a listener the signal ends a process whose file would exceed its limit.
  const onFull = (): void => undefined;
  before(async () => {
    process.on('SIGXFSZ', onFull);
    jobs = await JobFixture.start();
    dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-full-'));
    ({ db } = await tryDatabase({ dataDir, databaseUrl: undefined }, activity));
  });
  after(async () => {
    await limitFiles('unlimited');
    process.off('SIGXFSZ', onFull);
    await db?.destroy();
    await jobs?.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  /** Limits the size of files that this process writes: its database fails as on a full disk. */
  const limitFiles = (bytes: string) => run('prlimit', [`--pid=${process.pid}`, `--fsize=${bytes}:`]);

  /** Puts the record of an ended job into the outbox as settlement does. */
  async function sendRecord(): Promise<string> {
    const job = jobs.identity();
    const record = {
      ...{ ...job, beganAt: job.createdAt, endedAt: job.createdAt, vendor: 'sandbox', outcome: 'completed' as const },
      ...{ errorCode: undefined, attempts: 1, usage: undefined, cost: 5 },
    };
    await jobs.redis.xadd(outbox, '*', 'r', recordText(record), 'c', 5);
    return record.id;
  }

  test('records wait in the outbox while the disk is full: none is quarantined, and all are written once there is space', async () => {
    await limitFiles(String((await stat(join(dataDir, `${databaseFile}-wal`))).size));
    const ids = [await sendRecord(), await sendRecord(), await sendRecord()];
    const ledger = new JobLedger({
      ...{ db, redis: jobs.redis, blobs: await Blobs.open(dataDir), retentionMs: 24 * hour, blobMs: hour },
      ...{ viewOf: () => undefined, metrics: createApiMetrics(new Registry()), log },
    });
    const refused: unknown[] = [];
    const writeItems = ledger.writeItems.bind(ledger);
    ledger.writeItems = async (items) => {
      try {
        return await writeItems(items);
      } catch (error) {
        refused.push((error as { code?: unknown }).code);
        throw error;
      }
    };
    const setAside: number[] = [];
    const consumer = new OutboxConsumer({
      group: new OutboxGroup({ redis: jobs.redis, isCluster: false, name: 'consumer' }),
      ...{ isCluster: false, store: ledger, log, takeOverRoundMs: 50, quarantine: new Quarantine(jobs.redis) },
      ...{ unreadable: new UnreadableEntries(log), onSetAside: (records) => setAside.push(records) },
    });
    try {
      await eventually(() => assert.ok(refused.length >= 2, 'it was not tried twice'), 20_000);
      // Not that of a rollback after SQLite's own.
      for (const code of refused) assert.match(String(code), /^SQLITE_(FULL|IOERR)/);
      assert.deepEqual([await jobs.redis.xlen(outbox), await jobs.redis.llen(quarantineKey), setAside], [3, 0, []]);
      await limitFiles('unlimited');
      await eventually(async () => assert.equal(await jobs.redis.xlen(outbox), 0), 30_000);
      const rows = await db.selectFrom('jobs').select('id').orderBy('id').execute();
      assert.deepEqual(
        rows.map(({ id }) => id),
        ids.sort(),
      );
      assert.equal(await jobs.redis.llen(quarantineKey), 0);
    } finally {
      await consumer.close(30_000);
    }
  });

  test('its state is read-only from the first write that the disk refuses, and ok again once there is space', async () => {
    const health = new DatabaseHealth(db, activity);
    const write = () => db.updateTable('accounts').set({ name: 'changed' }).execute();
    assert.equal(await health.state(10_000), 'ok');
    await limitFiles(String((await stat(join(dataDir, `${databaseFile}-wal`))).size));
    // What the log of the database has room for is still written.
    await eventually(() => assert.rejects(write), 20_000);
    assert.equal(await health.state(10_000), 'read-only');
    assert.equal(await health.state(10_000), 'read-only');
    assert.equal((await db.selectFrom('accounts').select('id').execute()).length, 1);
    await limitFiles('unlimited');
    // Nobody else writes.
    assert.equal(await health.state(10_000), 'ok');
    await write();
    assert.equal(await health.state(10_000), 'ok');
  });
});

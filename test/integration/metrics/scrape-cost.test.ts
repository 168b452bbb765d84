import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { LoadGauge } from '../../../api/admission/load-gauge.ts';
import { DatabaseHealth } from '../../../api/ledger/database-health.ts';
import { createLedgerMetrics } from '../../../api/ledger/ledger-metrics.ts';
import { Backlog } from '../../../api/ledger/outbox/outbox-size.ts';
import { addProcessGauges } from '../../../api/metrics/process-gauges.ts';
import { addSharedGauges } from '../../../api/metrics/shared-gauges.ts';
import { type Capability, capabilities } from '../../../shared/capabilities/capability.ts';
import { tryDatabase } from '../../../shared/database/database.ts';
import { DatabaseActivity } from '../../../shared/database/database-activity.ts';
import { ShardedQueue } from '../../../shared/queue/sharded-queue.ts';
import { accountKeys } from '../../../shared/redis/keys.ts';
import {
  createApiMetrics,
  createFaultCounter,
  createPacedFrames,
  createRegistry,
  type Registry,
} from '../../../shared/runtime/metrics.ts';
import { JobFixture } from '../../support/faults/job-fixture.ts';
import { TestGateway } from '../../support/gateway.ts';
import { MetricsPage } from '../../support/metrics-page.ts';

/** Commands that one collection of an api may cost Redis. */
const maxCommands = 40;
const jobsPerQueue = 30;
const recordsPerOutbox = 3;

describe('the cost of a scrape', () => {
  let jobs: JobFixture;
  let dataDir: string;
  const closers: (() => unknown)[] = [];
  before(async () => {
    jobs = await JobFixture.start();
    dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-metrics-'));
  });
  after(async () => {
    for (const close of closers.reverse()) await close();
    await jobs.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  /** Fills every queue and every outbox. */
  async function fill(queues: ReadonlyMap<Capability, ShardedQueue>): Promise<void> {
    for (const [capability, queue] of queues) {
      for (let made = 0; made < jobsPerQueue; made++) {
        await queue.shard(0).enqueue({ ...jobs.identity({ capability }), request: '{}' }, made % 2 === 1);
      }
    }
    for (const outbox of accountKeys.allOutboxes()) {
      for (let made = 0; made < recordsPerOutbox; made++) await jobs.redis.xadd(outbox, '*', 'r', '{}');
    }
  }

  /** An api's metrics, over a Redis that nothing else uses: without its timers, every command is a scrape's. */
  async function apiRegistry(): Promise<Registry> {
    const { redis } = jobs;
    const queues = new Map(capabilities.map((name) => [name, new ShardedQueue(name, redis)]));
    for (const queue of queues.values()) closers.push(() => queue.close());
    await fill(queues);
    const load = new LoadGauge(redis, queues, { queueLimit: 1000, queueWaitMs: 60_000, highShare: 0.8 });
    load.close();
    await load.refresh();
    const backlog = new Backlog(redis, 1_000_000);
    await backlog.measure();
    const activity = new DatabaseActivity();
    const { db } = await tryDatabase({ dataDir, databaseUrl: undefined }, activity);
    closers.push(() => db.destroy());
    const registry = createRegistry('api', redis);
    createApiMetrics(registry);
    createFaultCounter(registry);
    createPacedFrames(registry);
    createLedgerMetrics(registry, { backlog, unreadable: { size: 0 }, spool: { records: 0, bytes: 0 } });
    addSharedGauges(registry, { redis, load, queues });
    addProcessGauges(registry, {
      ...{ handover: { size: 0 }, connections: { size: 0, unsent: 0 }, sockets: { size: 0 } },
      ...{ bodies: { total: 0 }, uploads: { total: 0 }, disk: { free: async () => 0 }, db, activity },
      database: new DatabaseHealth(db, activity),
    });
    return registry;
  }

  /** Calls of each command since the last reset, with those inside scripts. */
  async function commands(): Promise<[name: string, calls: number][]> {
    const stats = await jobs.redis.info('commandstats');
    return [...stats.matchAll(/^cmdstat_(\S+):calls=(\d+)/gm)].map(([, name = '', calls]) => [name, Number(calls)]);
  }

  it(`a scrape of an api with ${jobsPerQueue} jobs in each queue and records in each outbox costs at most ${maxCommands} Redis commands`, async (t) => {
    const registry = await apiRegistry();
    await jobs.redis.config('RESETSTAT');
    const page = new MetricsPage(await registry.metrics());
    const calls = (await commands()).filter(([name]) => name !== 'config|resetstat');
    const sum = calls.reduce((all, [, count]) => all + count, 0);
    t.diagnostic(`${sum} commands: ${calls.map(([name, count]) => `${name} ${count}`).join(', ')}`);
    assert.ok(sum <= maxCommands, `${sum} commands`);
    // It is a real scrape: its figures are Redis's.
    assert.ok(calls.some(([name]) => name === 'set'));
    assert.equal(page.sum('sluice_queue_waiting'), jobsPerQueue * capabilities.length);
    assert.ok(page.sum('sluice_queue_oldest_wait_seconds', 'capability="video"') > 0);
    assert.equal(page.sum('sluice_outbox_records'), recordsPerOutbox * accountKeys.allOutboxes().length);
    assert.ok(page.sum('sluice_outbox_oldest_seconds') > 0);
    // And it is a whole one: an api process has no further metrics.
    const gateway = await TestGateway.start({ workers: 0 });
    closers.push(() => gateway.stop());
    const live = await MetricsPage.read(gateway.url);
    const names = (of: MetricsPage): string[] => of.metrics.map(({ name }) => name).sort();
    assert.deepEqual(names(page), names(live));
  });
});

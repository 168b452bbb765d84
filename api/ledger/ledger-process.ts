import { join } from 'node:path';
import type { Blobs } from '../../shared/blobs/blobs.ts';
import type { Config } from '../../shared/config/config.ts';
import type { Database } from '../../shared/database/database.ts';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import type { ShardedQueue } from '../../shared/queue/sharded-queue.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import type { RedisClock } from '../../shared/redis/redis-clock.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import type { Registry } from '../../shared/runtime/metrics.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';
import { deleteExpiredBodies } from './expired-bodies.ts';
import type { JobLedger } from './job-ledger.ts';
import { createLedgerMetrics, type LedgerMetrics } from './ledger-metrics.ts';
import { LostJobs } from './lost-jobs.ts';
import { OutboxConsumer } from './outbox/outbox-consumer.ts';
import { OutboxGroup } from './outbox/outbox-group.ts';
import { Backlog } from './outbox/outbox-size.ts';
import { OutboxSpool } from './outbox/outbox-spool.ts';
import { Quarantine } from './outbox/quarantine.ts';
import { Spool } from './outbox/spool.ts';
import { UnreadableEntries } from './outbox/unreadable-entries.ts';
import { retainJobs } from './retention/job-retention.ts';

const housekeepingMs = 600_000;
const retentionFailure = 'making partitions for jobs, or removing expired ones, failed';
/** How long remaining records may be written for while the process closes. */
const drainMs = 2000;

export interface LedgerProcessOptions {
  readonly redis: RedisClient;
  readonly clock: Pick<RedisClock, 'now' | 'earlier'>;
  readonly isCluster: boolean;
  readonly processId: string;
  readonly queues: ReadonlyMap<JobIdentity['capability'], ShardedQueue>;
  readonly blobs: Blobs;
  readonly registry: Registry;
  readonly config: Config;
  readonly log: Logger;
  readonly db: Database;
  readonly ledger: JobLedger;
}

/** Minimum free bytes of the spool's disk. */
const minFreeBytes = 512 * 1024 * 1024;
/** Interval between measurements of the outboxes' size. */
const measureMs = 15_000;

/** The ledger's work in one process: writes records into the database, ends lost jobs, deletes expired bodies and rows. */
export class LedgerProcess {
  readonly #consumer: OutboxConsumer;
  readonly #lostJobs: LostJobs;
  readonly #timers: readonly NodeJS.Timeout[];
  readonly #closing = new AbortController();
  /** What is done in the background now. */
  readonly #running = new Set<Promise<void>>();

  private constructor(
    options: LedgerProcessOptions,
    consumer: OutboxConsumer,
    metrics: LedgerMetrics,
    measure: () => Promise<void>,
  ) {
    const { db, clock, queues, log } = options;
    this.#consumer = consumer;
    this.#lostJobs = new LostJobs({
      ...options,
      queue: (capability) => queues.get(capability) as ShardedQueue,
      onLost: () => metrics.lost.inc(),
    });
    const retain = (): Promise<void> => retainJobs(options, clock.earlier());
    this.#run(retain, retentionFailure, log);
    this.#timers = [
      this.#repeat(housekeepingMs, retain, retentionFailure, log),
      this.#repeat(
        housekeepingMs,
        () => deleteExpiredBodies(db, clock.earlier()),
        'removing expired job bodies failed',
        log,
      ),
      this.#repeat(measureMs, measure, 'the size of the outboxes cannot be read', log),
    ];
  }

  /** Starts the ledger's work. */
  static async open(options: LedgerProcessOptions): Promise<LedgerProcess> {
    const { redis, clock, isCluster, processId, ledger, registry, config, log } = options;
    const group = new OutboxGroup({ redis, isCluster, name: processId });
    const unreadable = new UnreadableEntries(log);
    const backlog = new Backlog(redis, config.outboxBytes, () => clock.now());
    const folder = join(config.dataDir, 'spool');
    const spool = await Spool.open({ folder, maxBytes: config.spoolBytes, minFreeBytes, log });
    const metrics = createLedgerMetrics(registry, { unreadable, backlog, spool });
    const quarantine = new Quarantine(redis, (records) => metrics.dropped.inc(records));
    const consumer = new OutboxConsumer({
      ...{ group, isCluster, unreadable, log, store: ledger, quarantine },
      onSetAside: (records) => metrics.setAside.inc(records),
      onFailure: () => metrics.failures.inc(),
      spool: new OutboxSpool({
        ...{ redis, group, spool, backlog, unreadable, log },
        read: async (item) => (item.isRead ? item : await ledger.read(item.record)),
        release: (items) => ledger.release(items),
      }),
    });
    return new LedgerProcess(options, consumer, metrics, async () => {
      const bytes = await backlog.measure();
      if (bytes > config.outboxBytes)
        log.warn({ bytes }, 'outbox exceeds its limit: is the database slow or unavailable?');
    });
  }

  /** Writes remaining records, for a bounded time. The database must still be open. */
  async close(): Promise<void> {
    this.#closing.abort();
    for (const timer of this.#timers) clearInterval(timer);
    this.#lostJobs.close();
    await Promise.all([this.#consumer.close(drainMs), withTimeout(Promise.all(this.#running), drainMs)]);
  }

  #repeat(ms: number, work: () => Promise<unknown>, failure: string, log: Logger): NodeJS.Timeout {
    // While Redis or the database is silent, one waits for it, and not one more each time.
    let isRunning = false;
    const timer = setInterval(() => {
      if (isRunning) return;
      isRunning = true;
      const done = (): void => {
        isRunning = false;
      };
      this.#run(() => work().finally(done), failure, log);
    }, ms);
    timer.unref();
    return timer;
  }

  /** Runs background work. What the end of the process cuts is taken up by the next one, so only other failures are logged. */
  #run(work: () => Promise<unknown>, failure: string, log: Logger): void {
    const running = work()
      .then(
        () => undefined,
        (error) => {
          if (!this.#closing.signal.aborted) log.warn({ err: error }, failure);
        },
      )
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
  }
}

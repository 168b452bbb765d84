import { type Capability, capabilities } from '../../shared/capabilities/capability.ts';
import type { ShardedQueue } from '../../shared/queue/sharded-queue.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import { evictedKeys } from '../../shared/redis/redis-memory.ts';
import { addGauge, atScrape, metricMakers, type Registry, readInTime } from '../../shared/runtime/metrics.ts';
import type { LoadGauge } from '../admission/load-gauge.ts';

/** Sources of the gauges that have the same value in every api process. */
export interface SharedGauges {
  readonly redis: RedisClient;
  readonly load: Pick<LoadGauge, 'memory' | 'fill' | 'oldestWaitMs' | 'isKnown'>;
  readonly queues: ReadonlyMap<Capability, Pick<ShardedQueue, 'active' | 'delayed' | 'flex' | 'high' | 'parked'>>;
}

/**
 * Adds the gauges of the queues and of Redis. One scrape costs Redis two commands for each queue and one for each master: what
 * admission reads anyway, at least once a second, is not read again.
 */
export function addSharedGauges(registry: Registry, { redis, load, queues }: SharedGauges): void {
  const { gauge } = metricMakers(registry);
  const perQueue = (
    name: string,
    help: string,
    read: (capability: Capability) => number | Promise<number | undefined>,
  ): void => {
    const found = gauge(name, help, 'capability');
    atScrape(found, async () => {
      const values = capabilities.map(async (capability) => {
        found.set({ capability }, (await readInTime(() => read(capability))) ?? Number.NaN);
      });
      await Promise.all(values);
    });
  };
  perQueue('sluice_queue_waiting', 'Jobs that wait for a worker, as of the last second.', (capability) =>
    load.isKnown(capability) ? load.fill(capability).waiting : Number.NaN,
  );
  perQueue('sluice_queue_active', 'Jobs that workers have claimed.', async (capability) =>
    queues.get(capability)?.active(),
  );
  perQueue(
    'sluice_queue_oldest_wait_seconds',
    'How long the oldest waiting job has waited, as of the last second.',
    (capability) => (load.isKnown(capability) ? load.oldestWaitMs(capability) / 1000 : Number.NaN),
  );
  perQueue(
    'sluice_queue_flex',
    'Jobs of low priority that wait for spare capacity, and are not among those that wait for a worker.',
    async (capability) => queues.get(capability)?.flex(),
  );
  perQueue(
    'sluice_queue_high',
    'Jobs of high priority that wait for a worker, before the others of those.',
    async (capability) => queues.get(capability)?.high(),
  );
  perQueue(
    'sluice_queue_parked',
    "Jobs that wait for their vendors' capacity. They need no worker meanwhile.",
    async (capability) => queues.get(capability)?.parked(),
  );
  const delayed = gauge(
    'sluice_queue_delayed',
    'Videos between two polls. They wait for a time and for a worker, without which none returns to its queue.',
    'capability',
  );
  atScrape(delayed, async () => {
    delayed.set(
      { capability: 'video' },
      (await readInTime(() => queues.get('video')?.delayed() ?? Promise.resolve(0))) ?? Number.NaN,
    );
  });
  addGauge(
    registry,
    'sluice_redis_memory_share',
    'Share of its memory that Redis uses, of maxmemory or else of its machine; of a Cluster: the fullest master. From 0.7 on new work is refused.',
    () => (load.isKnown('memory') ? load.memory.share : Number.NaN),
  );
  addGauge(registry, 'sluice_redis_maxmemory_bytes', 'Memory that Redis may use; 0: it has no limit.', () =>
    load.isKnown('memory') ? load.memory.limit : Number.NaN,
  );
  addGauge(
    registry,
    'sluice_redis_evicted_keys',
    'Keys that Redis has evicted since its start: each may have been a job or a balance.',
    () => evictedKeys(redis),
  );
}

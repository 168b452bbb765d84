import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LoadGauge } from '../../../../api/admission/load-gauge.ts';
import type { ShardedQueue } from '../../../../shared/queue/sharded-queue.ts';
import type { RedisClient } from '../../../../shared/redis/redis.ts';
import { eventually } from '../../../support/eventually.ts';

test('queues are looked at after the clock of the host was put back by an hour, so that none seems full for so long', async (t) => {
  let waiting = 2;
  const queue = {
    waiting: async () => waiting,
    depth: async () => ({ active: 0, oldestWaitMs: 0 }),
    progress: async () => undefined,
  } as unknown as ShardedQueue;
  const redis = { info: async () => '' } as unknown as RedisClient;
  const limits = { queueLimit: 2, queueWaitMs: 60_000, highShare: 0.8 };
  const gauge = new LoadGauge(redis, new Map([['chat', queue]]), limits);
  t.after(() => gauge.close());
  await gauge.refresh();
  assert.equal(gauge.shedding('chat'), 'queue_full');
  const now = Date.now;
  t.mock.method(Date, 'now', () => now() - 3_600_000);
  waiting = 0;
  await eventually(() => assert.equal(gauge.shedding('chat'), undefined), 2000);
  assert.ok(gauge.isKnown('chat'));
});

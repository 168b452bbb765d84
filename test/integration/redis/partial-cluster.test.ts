import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Cluster } from 'ioredis';
import { RedisWatch, redisIdentity } from '../../../api/ledger/redis-watch.ts';
import { jobKeys, raisedKey } from '../../../shared/redis/keys.ts';
import { connectRedis } from '../../../shared/redis/redis.ts';
import { createLogger } from '../../../shared/runtime/log.ts';
import { eventually } from '../../support/eventually.ts';
import { startRedisCluster } from '../../support/redis-cluster.ts';

const { log } = createLogger('silent', 'test');
/** Of many tags, of which a Cluster has some on each node. */
const jobs = Array.from({ length: 100 }, (_, index) => String(index).padStart(32, '0'));

test('a Cluster that goes on without one of its masters is not behind, and is once that master is back without being raised', {
  timeout: 120_000,
}, async (t) => {
  const cluster = await startRedisCluster({ args: ['--cluster-require-full-coverage', 'no'] });
  t.after(() => cluster.stop());
  const { client, close } = await connectRedis(cluster.url, log);
  t.after(() => close());
  let isDatabaseThere = true;
  const raises = { done: 0, failed: 0 };
  /** Reads something of each master, as raising Redis to the ledger does. */
  const raise = async (): Promise<void> => {
    try {
      if (!isDatabaseThere) throw new Error('the database is away');
      await Promise.all(jobs.map((job) => client.exists(jobKeys.state(job))));
      raises.done++;
    } catch (error) {
      raises.failed++;
      throw error;
    }
  };
  const watch = new RedisWatch({
    ...{ redis: client, raise, log, intervalMs: 100 },
    isDatabaseThere: async () => isDatabaseThere,
  });
  t.after(() => watch.close());
  await watch.raise();
  // The one that could tell that another process has raised it.
  const slot = Number(await client.call('CLUSTER', 'KEYSLOT', raisedKey));
  const lost = cluster.nodes[Math.floor((slot / 16_384) * cluster.nodes.length)];
  await lost?.kill();
  await eventually(() => assert.ok(raises.failed >= 2, 'it is not noticed'), 60_000);
  assert.deepEqual([raises.done, watch.isBehind], [1, false]);
  isDatabaseThere = false;
  await lost?.restart();
  await eventually(() => assert.equal(watch.isBehind, true), 30_000);
  // One that began while the database was there may have found that master back, and raised Redis without it once more.
  const { done } = raises;
  isDatabaseThere = true;
  await eventually(() => assert.deepEqual([raises.done, watch.isBehind], [done + 1, false]), 30_000);
});

test('a Cluster of which no master is connected, as while its nodes are looked for, is not taken for another one that is behind', {
  timeout: 60_000,
}, async (t) => {
  const cluster = await startRedisCluster();
  t.after(() => cluster.stop());
  const { client, close } = await connectRedis(cluster.url, log);
  t.after(() => close());
  let raises = 0;
  const watch = new RedisWatch({
    ...{ redis: client, log, intervalMs: 60_000, isDatabaseThere: async () => false },
    raise: async () => {
      if (raises++ > 0) throw new Error('the database is away');
    },
  });
  await watch.raise();
  assert.ok(client instanceof Cluster);
  client.nodes = () => [];
  await assert.rejects(redisIdentity(client), /no master of the Redis Cluster is connected/);
  client.emit('ready');
  // It ends once the look is over.
  await watch.close();
  assert.deepEqual([raises, watch.isBehind], [1, false]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { queuePrefix } from '../../shared/redis/keys.ts';
import { eventually } from '../support/eventually.ts';
import { Callers, endings } from '../support/faults/callers.ts';
import { isSoak, Load, streamCount, verify } from '../support/faults/load.ts';
import { TestGateway } from '../support/gateway.ts';
import { startRedisCluster, type TestRedisCluster } from '../support/redis-cluster.ts';

/** How long a killed master may keep callers from success. */
const maxSilenceMs = 8000;
const shards = 6;

/** The index of the master that has the first shard of the chat queue's jobs. */
async function masterOfShard(cluster: TestRedisCluster): Promise<number> {
  const counts = await Promise.all(
    cluster.nodes.map(async ({ url }) => {
      const redis = new Redis(url);
      const keys = await redis.keys(`${queuePrefix('chat', 1)}:*`);
      redis.disconnect();
      return keys.length;
    }),
  );
  return counts.findIndex((count) => count > 0);
}

async function isMaster(url: string): Promise<boolean> {
  const redis = new Redis(url);
  const role = await redis.info('replication');
  redis.disconnect();
  return role.includes('role:master');
}

test('no accepted job and no stream is lost when the master of a shard is killed, and the other shards go on', {
  timeout: 240_000,
}, async (t) => {
  const cluster = await startRedisCluster({ hasReplicas: true });
  t.after(() => cluster.stop());
  const settings = { WORKER_CONCURRENCY_CHAT: '1000', SLUICE_QUEUE_SHARDS: String(shards) };
  const gateway = await TestGateway.start({ redisUrl: cluster.url, apis: 2, workers: 2, settings });
  t.after(() => gateway.stop());
  const callers = new Callers(gateway, streamCount(2, 5), streamCount(4, 10));
  const load = new Load(gateway);
  const count = streamCount(6, 50);
  load.add(count, { words: 100, wordsPerSecond: 10 });
  await load.reached(count, 5);
  const killed = await masterOfShard(cluster);
  const [master, replica] = [cluster.nodes[killed], cluster.replicas[killed]];
  assert.ok(master && replica);
  await master.kill();
  await eventually(async () => assert.ok(await isMaster(replica.url), 'the replica is not the master yet'), 30_000);
  const atFailover = callers.successes.length;
  await eventually(() => assert.ok(callers.successes.length > atFailover + 10, 'no answer since the failover'), 30_000);
  await callers.stop();
  const records = await load.records();
  const { accepted, successes, failures, silenceMs } = callers;
  const ended = await endings(gateway, accepted);
  t.diagnostic(
    `${accepted.length} accepted jobs ${JSON.stringify(ended)}, ${successes.length} held answers, ${failures} refused, ${Math.round(silenceMs)} ms without success`,
  );
  assert.ok(accepted.length > 0);
  assert.deepEqual(ended, { completed: accepted.length });
  if (isSoak) assert.ok(silenceMs <= maxSilenceMs, `${silenceMs} ms`);
  const left = cluster.nodes.map((node, index) => (index === killed ? replica : node));
  const options = { redisUrl: left.map(({ url }) => url).join(','), hasLostWrites: true };
  await verify(t, 'a killed master of a shard', { gateway, records, endings: ['done'], ...options });
});

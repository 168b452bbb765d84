import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { Redis } from 'ioredis';
import { builtProduct, TestGateway } from '../../support/gateway.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { startRedisCluster } from '../../support/redis-cluster.ts';

/** What a process says before it ends by itself, and its exit code. */
async function endOf(file: string, settings: NodeJS.ProcessEnv): Promise<{ code: number | null; said: string }> {
  const child = spawn(process.execPath, [`${builtProduct}/${file}`], {
    env: settings,
    stdio: ['ignore', 'ignore', 'pipe'],
    // One that starts is ended, and has no code.
    timeout: 120_000,
  });
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  return { code, said };
}

describe('a Redis that may evict keys', () => {
  let redis: TestRedis;
  let gateway: TestGateway;

  before(async () => {
    redis = await startRedis({ args: ['--maxmemory-policy', 'volatile-lru', '--maxmemory', '100mb'] });
    gateway = await TestGateway.start({ redisUrl: redis.url, apis: 0, workers: 0 });
  });

  after(async () => {
    await gateway?.stop();
    await redis?.stop();
  });

  for (const file of ['api/main.js', 'workers/main.js', 'launcher/main.js']) {
    test(`${file} does not start on a Redis that may evict keys, and says what to do`, async () => {
      const { code, said } = await endOf(file, gateway.settings({ PORT: '0' }));
      assert.equal(code, 1);
      assert.match(said, /Redis has maxmemory-policy volatile-lru and may silently lose accepted jobs/);
      assert.match(said, /set it to noeviction \(CONFIG SET .* SLUICE_REDIS_EVICTION=allowed starts all the same/);
    });
  }

  test('a gateway starts on a Redis that may evict keys if the operator allows it, and warns', async () => {
    const allowed = { SLUICE_REDIS_EVICTION: 'allowed' };
    const [api, worker] = await Promise.all([gateway.startApi(allowed), gateway.startWorker(allowed)]);
    assert.deepEqual(await Promise.all([api.stop(), worker.stop()]), [0, 0]);
    assert.match(api.output(), /maxmemory-policy volatile-lru and may silently lose accepted jobs/);
  });

  test('one node of a Cluster that may evict keys is enough for a start to be refused', async () => {
    const cluster = await startRedisCluster();
    try {
      const settings = gateway.settings({ REDIS_URL: cluster.url, PORT: '0' });
      await setPolicy(cluster.nodes[2] as TestRedis, 'allkeys-lru');
      const { code, said } = await endOf('workers/main.js', settings);
      assert.equal(code, 1);
      assert.match(said, /maxmemory-policy allkeys-lru/);
    } finally {
      await cluster.stop();
    }
  });
});

async function setPolicy({ url }: TestRedis, policy: string): Promise<void> {
  const redis = new Redis(url);
  await redis.config('SET', 'maxmemory-policy', policy);
  redis.disconnect();
}

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { Redis } from 'ioredis';
import { startEmbeddedRedis } from '../../launcher/embedded-redis.ts';
import { checkRedisMemory, memoryUse } from '../../shared/redis/redis-memory.ts';
import { eventually } from '../support/eventually.ts';
import { TestGateway } from '../support/gateway.ts';
import { startRedis } from '../support/redis.ts';

/** `maxmemory` of the Redis that `npm start` runs. */
async function embeddedLimit(setting?: string): Promise<number> {
  const dir = await mkdtemp(join(tmpdir(), 'sluice-test-embedded-'));
  const embedded = await startEmbeddedRedis(dir, setting);
  const redis = new Redis(embedded.url);
  try {
    assert.deepEqual(await redis.config('GET', 'maxmemory-policy'), ['maxmemory-policy', 'noeviction']);
    assert.deepEqual(await checkRedisMemory(redis, true), []);
    return (await memoryUse(redis)).limit;
  } finally {
    redis.disconnect();
    await embedded.stop(5000);
    await rm(dir, { recursive: true, force: true });
  }
}

describe('the memory of Redis', () => {
  test('the memory of Redis has a limit where npm start runs it: a share of the machine, or as set', async () => {
    assert.ok((await embeddedLimit()) >= 256 * 1024 * 1024);
    assert.equal(await embeddedLimit('300mb'), 300 * 1024 * 1024);
  });

  test('the memory of Redis is warned of where it has no limit, told by a metric, and reckoned by its machine', async () => {
    const gateway = await TestGateway.start({ workers: 0 });
    const redis = new Redis(gateway.redisUrl);
    try {
      assert.match((await checkRedisMemory(redis, true)).join(), /has no maxmemory/);
      const { share, limit } = await memoryUse(redis);
      assert.equal(limit, 0);
      assert.ok(share > 0 && share < 1, `${share}`);
      await eventually(() => assert.match(gateway.apis[0]?.output() ?? '', /Redis has no maxmemory/));
      const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
      assert.match(metrics, /^sluice_redis_maxmemory_bytes\{[^}]*\} 0$/m);
    } finally {
      redis.disconnect();
      await gateway.stop();
    }
  });

  test('the memory of Redis is not warned of where it has one and evicts nothing', async () => {
    const server = await startRedis({ args: ['--maxmemory', '100mb'] });
    const redis = new Redis(server.url);
    assert.deepEqual(await checkRedisMemory(redis, true), []);
    assert.equal((await memoryUse(redis)).limit, 100 * 1024 * 1024);
    await redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
    assert.match((await checkRedisMemory(redis, true)).join(), /allkeys-lru/);
    redis.disconnect();
    await server.stop();
  });
});

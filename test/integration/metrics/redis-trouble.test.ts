import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { Redis } from 'ioredis';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { builtProduct, TestGateway } from '../../support/gateway.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { refusals } from '../../support/redis-refusals.ts';

describe('health and metrics while Redis is in trouble', { skip: process.env.SLUICE_TEST_REDIS === 'cluster' }, () => {
  let gateway: TestGateway;
  let server: TestRedis;
  let workerUrl = '';
  before(async () => {
    server = await startRedis();
    gateway = await TestGateway.start({ redisUrl: server.url, workers: 0 });
    const port = await freePort();
    workerUrl = `http://127.0.0.1:${port}`;
    await gateway.startWorker({ WORKER_PORT: String(port) });
  });
  after(async () => {
    await gateway?.stop();
    await server?.stop();
  });

  const readiness = async (url: string) => {
    const response = await fetch(`${url}/readyz`);
    const { checks } = (await response.json()) as { checks: { redis: string } };
    return { status: response.status, checks };
  };

  const redisLag = async (url: string): Promise<number> => {
    const page = await (await fetch(`${url}/metrics`)).text();
    return Number(/^sluice_redis_lag_seconds\{[^}]*\} (\S+)$/m.exec(page)?.[1]);
  };

  for (const { code, begin, end } of refusals.filter((one) => one.code !== 'MISCONF')) {
    test(`api and worker are not ready, and their metrics say so, while Redis answers every write with ${code}, and are again afterwards`, async () => {
      const redis = new Redis(server.url);
      try {
        await begin(redis, server);
        for (const url of [gateway.url, workerUrl]) {
          await eventually(async () => {
            const { status, checks } = await readiness(url);
            assert.equal(status, 503);
            assert.equal(checks.redis, 'refusing');
          });
          assert.equal((await fetch(`${url}/healthz`)).status, 200);
          assert.equal(await redisLag(url), -1);
        }
        await end(redis);
        for (const url of [gateway.url, workerUrl]) {
          await eventually(async () => assert.equal((await readiness(url)).status, 200), 15_000);
          assert.ok((await redisLag(url)) >= 0);
        }
      } finally {
        await end(redis);
        redis.disconnect();
      }
    });
  }

  test('what only Redis knows is NaN among the metrics while it is away, and not what it was before', async () => {
    const names = [
      ...['sluice_queue_waiting', 'sluice_queue_oldest_wait_seconds', 'sluice_queue_active', 'sluice_queue_parked'],
      ...['sluice_redis_memory_share', 'sluice_redis_maxmemory_bytes', 'sluice_redis_evicted_keys'],
    ];
    const values = async (): Promise<readonly string[]> => {
      const page = await (await fetch(`${gateway.url}/metrics`)).text();
      return names.map((name) => new RegExp(`^${name}\\{[^}]*\\} (\\S+)$`, 'm').exec(page)?.[1] ?? 'missing');
    };
    await eventually(async () => assert.ok(!(await values()).includes('Nan'), 'not all are known'));
    await server.kill();
    const none = names.map(() => 'Nan');
    await eventually(async () => assert.deepEqual(await values(), none), 20_000);
    await server.restart();
    await eventually(async () => assert.ok(!(await values()).includes('Nan'), 'not all are known'), 20_000);
  });

  test('no process starts on a replica, whose every write would be refused, and each says what to name instead', async () => {
    const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(server.port)] });
    try {
      for (const file of ['api/main.js', 'workers/main.js', 'launcher/main.js']) {
        const child = spawn(process.execPath, [`${builtProduct}/${file}`], {
          env: gateway.settings({ PORT: '0', REDIS_URL: replica.url }),
          stdio: ['ignore', 'ignore', 'pipe'],
          // One that hangs is ended, and has no code.
          timeout: 30_000,
        });
        const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
        assert.equal(code, 1, `${file}: ${said}`);
        assert.match(
          said,
          /^Redis at 127\.0\.0\.1:\d+ is a replica, which takes no writes: name its master in REDIS_URL/m,
        );
      }
    } finally {
      await replica.stop();
    }
  });
});

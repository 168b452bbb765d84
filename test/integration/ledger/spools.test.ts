import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { Redis } from 'ioredis';
import { loadProduct } from '../../support/gateway.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const { spoolsKey } = await loadProduct<typeof import('../../../shared/redis/keys.ts')>('shared/redis/keys');
const { createLogger } = await loadProduct<typeof import('../../../shared/runtime/log.ts')>('shared/runtime/log');
const { OutboxSpool } = await loadProduct<typeof import('../../../api/ledger/outbox/outbox-spool.ts')>(
  'api/ledger/outbox/outbox-spool',
);
const { isSpooledAnywhere } = await loadProduct<typeof import('../../../api/ledger/outbox/spool-reports.ts')>(
  'api/ledger/outbox/spool-reports',
);
const { Spool } = await loadProduct<typeof import('../../../api/ledger/outbox/spool.ts')>('api/ledger/outbox/spool');

const { log } = createLogger('silent', 'test');
const minute = 60_000;
const day = 86_400_000;

let server: TestRedis;
let redis: Redis;
let folder: string;
before(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
});
beforeEach(async () => {
  await redis.flushall();
  folder = await mkdtemp(join(tmpdir(), 'sluice-test-spools-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));
after(async () => {
  redis?.disconnect();
  await server?.stop();
});

/** The spool of an api process that starts on the folder. */
async function openSpool() {
  const spool = await Spool.open({ folder: join(folder, 'spool'), maxBytes: 1e9, minFreeBytes: 0, log });
  const unused = {} as never;
  const outboxSpool = new OutboxSpool({
    ...{ redis, spool, log, group: unused, backlog: unused, unreadable: unused, read: unused, release: unused },
  });
  return { spool, outboxSpool };
}

/** Lets this process's clock be so far ahead while it works. */
async function withClock<T>(aheadMs: number, work: () => Promise<T>): Promise<T> {
  const { now } = Date;
  Date.now = () => now() + aheadMs;
  try {
    return await work();
  } finally {
    Date.now = now;
  }
}

describe('spools reported in Redis', () => {
  test('spools that were not reported for a week are removed from Redis, and others stay', async () => {
    const ages = { live: minute, silent: day, gone: 8 * day, malformed: Number.NaN };
    for (const [name, age] of Object.entries(ages)) await redis.hset(spoolsKey, name, Date.now() - age);
    assert.equal(await isSpooledAnywhere(redis, log), true);
    assert.deepEqual((await redis.hkeys(spoolsKey)).sort(), ['live', 'silent']);
    await redis.hdel(spoolsKey, 'live');
    // Its records are considered lost already, but an operator can still learn of its disk.
    assert.equal(await isSpooledAnywhere(redis, log), false);
    assert.deepEqual(await redis.hkeys(spoolsKey), ['silent']);
  });

  test('the last removed spool leaves no key in Redis', async () => {
    await redis.hset(spoolsKey, 'gone', Date.now() - 8 * day);
    assert.equal(await isSpooledAnywhere(redis, log), false);
    assert.equal(await redis.exists(spoolsKey), 0);
  });

  test('a spool whose disk comes back after it was removed from Redis is reported again until it is empty', async () => {
    const { spool, outboxSpool } = await openSpool();
    await spool.add(['{"v":1,"key":']);
    await outboxSpool.oldest();
    await redis.hset(spoolsKey, spool.name, Date.now() - 8 * day);
    await isSpooledAnywhere(redis, log);
    assert.equal(await redis.exists(spoolsKey), 0);
    const back = await openSpool();
    const file = await back.outboxSpool.oldest();
    assert.deepEqual(await redis.hkeys(spoolsKey), [spool.name]);
    assert.equal(await isSpooledAnywhere(redis, log), true);
    await file?.remove();
    assert.equal(await redis.exists(spoolsKey), 0);
  });

  test('processes whose clocks are days apart see the same spools', async () => {
    for (const skew of [-9 * day, 9 * day]) {
      const { spool, outboxSpool } = await openSpool();
      if (spool.records === 0) await spool.add(['{"v":1,"key":']);
      await withClock(skew, () => outboxSpool.oldest());
      for (const reader of [skew, 0, -skew]) {
        assert.equal(await withClock(reader, () => isSpooledAnywhere(redis, log)), true, `${skew}, ${reader}`);
      }
      assert.deepEqual(await redis.hkeys(spoolsKey), [spool.name]);
    }
  });
});

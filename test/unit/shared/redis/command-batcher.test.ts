import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { batchCommands, setBatchDelay } from '../../../../shared/redis/command-batcher.ts';
import { eventually } from '../../../support/eventually.ts';
import { startRedis, type TestRedis } from '../../../support/redis.ts';

describe('a connection that writes commands in batches', () => {
  let server: TestRedis;
  let batched: Redis;
  let other: Redis;

  before(async () => {
    server = await startRedis();
    batched = new Redis(server.url);
    other = new Redis(server.url);
    batchCommands(batched);
  });
  beforeEach(() => setBatchDelay(batched, () => 0));
  after(async () => {
    batched?.disconnect();
    other?.disconnect();
    await server?.stop();
  });

  /** Sends a command whose reply comes once `other` pushes to its list, and another one behind it. */
  async function sendTwo(): Promise<{ replies: Promise<unknown[]> }> {
    await batched.ping();
    const first = batched.blpop('list', 20);
    await eventually(() => assert.equal(batched.stream.writableLength, 0));
    const second = batched.echo('second');
    return { replies: Promise.all([first, second]) };
  }

  it('writes a command without awaiting the reply to the one before while its process has little to do', async () => {
    const { replies } = await sendTwo();
    await eventually(() => assert.equal(batched.stream.writableLength, 0));
    await other.lpush('list', 'pushed');
    assert.deepEqual(await replies, [['list', 'pushed'], 'second']);
  });

  it('holds a command back until the one before is answered while its process is busy', async () => {
    setBatchDelay(batched, () => 1);
    const { replies } = await sendTwo();
    await delay(50);
    assert.ok(batched.stream.writableLength > 0, 'written at once');
    await other.lpush('list', 'pushed');
    assert.deepEqual(await replies, [['list', 'pushed'], 'second']);
  });

  it('writes what it holds back once its process is no longer busy, in order', async () => {
    let ms = 1;
    setBatchDelay(batched, () => ms);
    const { replies } = await sendTwo();
    ms = 0;
    const third = batched.echo('third');
    await eventually(() => assert.equal(batched.stream.writableLength, 0));
    await other.lpush('list', 'pushed');
    assert.deepEqual(await replies, [['list', 'pushed'], 'second']);
    assert.equal(await third, 'third');
  });
});
